//! The newest client's own download, where no server was named.

use std::env;
use std::fs::File;
use std::io;
use std::path::PathBuf;

use pocket_ic_16::{LATEST_SERVER_VERSION, StartServerParams, start_server};

use crate::error::Error;
use crate::guard::guarded;
use crate::server::end;

/// A server that the client has downloaded, now or before.
pub(crate) fn downloaded() -> Result<PathBuf, Error> {
    // Where the client keeps it.
    let folder = format!("pocket-ic-server-{LATEST_SERVER_VERSION}");
    let path = env::temp_dir().join(folder).join("pocket-ic");
    if !path.is_file() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let start = || runtime.block_on(start_server(StartServerParams::default()));
        let (mut child, _) = unheard(|| guarded(start))?.map_err(Error::NoServer)?;
        // It was started as it should not run here: what it prints would be ours.
        end(&mut child);
    }
    Ok(path)
}

/// The client reports downloads on stdout, which is for results.
fn unheard<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let stdout = rustix::io::dup(rustix::stdio::stdout())?;
    rustix::stdio::dup2_stdout(File::create("/dev/null")?)?;
    let done = work();
    rustix::stdio::dup2_stdout(&stdout)?;
    Ok(done)
}
