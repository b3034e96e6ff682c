//! `stablebench serve` as a child.

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
    /// In the order in which they were named.
    pub canisters: Vec<String>,
    /// `--replica` and `--canister` of all.
    target: Vec<String>,
}

impl Server {
    /// Serves what `arguments` say, at a free port.
    pub fn start(arguments: &[&str], directory: &Path) -> Self {
        let args = [&["serve", "--port=0", "--quiet"], arguments].concat();
        Self::of(&mut command(&args, directory))
    }

    /// A server that this command starts.
    pub fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (mut url, mut root_key, mut canisters) = (String::new(), String::new(), Vec::new());
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["URL", found] => url = (*found).to_owned(),
                ["root", "key", found] => root_key = (*found).to_owned(),
                [_, id] => canisters.push((*id).to_owned()),
                _ => break,
            }
        }
        let address = url.strip_prefix("http://").unwrap().parse().unwrap();
        let mut server = Self { child, address, root_key, canisters, target: Vec::new() };
        server.target.push(server.replica());
        server.target.extend(server.canisters.iter().map(|id| format!("--canister={id}")));
        server
    }

    /// The process's id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it tells beside its output, until its end; where that is piped.
    pub fn told(&mut self) -> String {
        let mut told = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        told
    }

    /// Waits for its end; answers the exit code.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// `--replica=URL`
    pub fn replica(&self) -> String {
        format!("--replica=http://{}", self.address)
    }

    /// The options by which it is measured on.
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
