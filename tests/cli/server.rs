//! `stablebench serve` as a child process.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::command;

/// A server, until it is dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    pub root_key: String,
    /// The canisters in the order of the arguments.
    pub canisters: Vec<String>,
    /// All that it printed at its start.
    pub printed: String,
    /// The options `--replica` and `--canister` of all canisters.
    target: Vec<String>,
}

impl Server {
    /// Starts a server with these arguments at a free port.
    pub fn start(arguments: &[&str], directory: &Path) -> Self {
        let args = [&["serve", "--port=0", "--quiet"], arguments].concat();
        Self::of(&mut command(&args, directory))
    }

    /// Starts a server with this command.
    pub fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (mut url, mut root_key, mut canisters) = (String::new(), String::new(), Vec::new());
        let mut printed = String::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            printed += &line;
            printed.push('\n');
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["URL", found] => url = (*found).to_owned(),
                // The last line.
                ["root", "key", found] => {
                    root_key = (*found).to_owned();
                    break;
                }
                [_, id] | [_, id, _] => canisters.push((*id).to_owned()),
                _ => {}
            }
        }
        let address = url.strip_prefix("http://").unwrap().parse().unwrap();
        let mut server = Self { child, address, root_key, canisters, printed, target: Vec::new() };
        server.target.push(server.replica());
        server.target.extend(server.canisters.iter().map(|id| format!("--canister={id}")));
        server
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its stderr until its end, if that is piped.
    pub fn notes(&mut self) -> String {
        let mut notes = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut notes).unwrap();
        notes
    }

    /// Waits for its end, and returns the exit code.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Returns `--replica=URL`.
    pub fn replica(&self) -> String {
        format!("--replica=http://{}", self.address)
    }

    /// Returns the options for a run on it.
    pub fn target(&self) -> Vec<&str> {
        self.target.iter().map(String::as_str).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
