//! Canisters on an embedded subnet, for `call`, `profile` and `serve`: their installation with environment
//! variables and stable memory, calls, and saved subnets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use stablebench_replica::subnet::{Call, Executed, Subnet};
use stablebench_replica::{Canister, Execution, Module, Principal, Rules, files};
use stablebench_server::sign_data;

use super::interface::{Argument, Interface, Names, named};
use crate::canisters::{self, Built};
use crate::progress::Progress;
use crate::replica::embedded::{Embedded, install_with};
use crate::report::number::Grouped;
use crate::terminal::quoted;

/// Rounds that are executed after the answer, for calls that go on.
const MAX_ROUNDS: usize = 100;
/// Nanoseconds between two messages to a saved subnet.
const MESSAGE_INTERVAL: u64 = 1_000_000_000;
/// Canisters of `--with`.
const MAX_OTHERS: usize = 100;

/// A message of a user.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub callee: Principal,
    pub method: &'a str,
    pub argument: &'a [u8],
    pub query: bool,
}

/// A call, with everything that followed from it.
#[derive(Debug)]
pub struct Followed {
    pub call: Call,
    /// Executions that are not part of the call, because there were too many.
    unlisted: u64,
    /// True if calls are open after the last round.
    unfinished: bool,
}

/// The arguments of installations, and the interface of the canister.
#[derive(Clone, Debug, Default, Args)]
pub struct InstallArgs {
    /// The arguments of the canister's installation as Candid text, or @FILE with the text or bytes.
    /// In a text, "{NAME}" is the id of the canister NAME of this command.
    #[arg(long, value_name = "ARGUMENTS")]
    pub init: Option<String>,
    /// The arguments of the installation of another canister, in the same form; may be repeated.
    #[arg(long, num_args = 2, value_names = ["NAME", "ARGUMENTS"])]
    pub init_of: Vec<String>,
    /// The interface of the canister, if its module does not contain it.
    #[arg(long, value_name = "FILE")]
    pub candid: Option<PathBuf>,
}

impl InstallArgs {
    /// The options as they are typed.
    pub fn words(&self) -> Vec<String> {
        let option = |(name, value): (&str, &String)| format!("{name} {}", quoted(value));
        let candid = self.candid.as_ref().map(|path| path.display().to_string());
        let mut words: Vec<String> = [("--init", &self.init), ("--candid", &candid)]
            .into_iter()
            .filter_map(|(name, value)| Some(option((name, value.as_ref()?))))
            .collect();
        let pairs = self.init_of.chunks_exact(2);
        words.extend(pairs.map(|it| format!("--init-of {} {}", quoted(&it[0]), quoted(&it[1]))));
        words
    }
}

/// The canisters that a command names.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'a> {
    /// The canister to call: its name, the path of its module, or the id of a saved one.
    pub canister: &'a str,
    /// Those of `--with`: names and paths, after `NAME=` if they get another name.
    pub with: &'a [String],
    /// The file of `--state`.
    pub state: Option<&'a Path>,
    pub install: &'a InstallArgs,
}

/// A subnet with these canisters.
pub struct Loaded {
    pub subnet: Subnet,
    /// The ids of the first canister and of those of `--with`, in their order.
    pub listed: Vec<Principal>,
    /// The canister to call.
    pub callee: Principal,
    /// Its interface.
    pub interface: Interface,
    /// The names of the canisters.
    pub names: Names,
}

/// A canister that is not installed yet.
#[derive(Debug)]
pub struct New {
    pub id: Principal,
    pub name: String,
    pub wasm: Vec<u8>,
    /// The word that names it, unless it is the first canister of the command.
    pub other: Option<String>,
}

impl New {
    /// Installs the module with its arguments, and returns its interface.
    pub fn install(
        &self,
        canister: &mut Canister,
        arguments: &Arguments,
        install: &InstallArgs,
        replica: &Embedded,
    ) -> Result<Interface> {
        let module = replica.compile_for_subnet(self.id, &self.wasm)?;
        let (file, option) = match self.other {
            None => (install.candid.as_deref(), "--init".to_owned()),
            Some(_) => (None, format!("--init-of {}", self.name)),
        };
        let interface = Interface::of(&module, canister, file, replica.progress())?;
        let argument = interface.constructor(arguments.get(&self.id), &self.name, &option)?;
        check_size(&argument, module.rules(), &format!("the installation of {}", self.name))?;
        let step = replica.progress().spinner(&format!("installing {}", self.name));
        install_with(canister, &module, &argument)?;
        step.done("");
        Ok(interface)
    }
}

/// Loads the saved canisters, and installs the others. Prints the ids of those of `--with`.
///
/// Of a saved subnet, the first canister and those of `--with` are the canisters that were named in
/// the same place when it was saved, and must have the same modules. Others of `--with` are new.
pub fn load(
    chosen: Chosen<'_>,
    environment: &Environment,
    replica: &Embedded,
    progress: &Progress,
) -> Result<Loaded> {
    let Chosen { canister: name, with, state, install } = chosen;
    if with.len() > MAX_OTHERS {
        bail!("--with is given {} times; at most {MAX_OTHERS} canisters fit", with.len());
    }
    let (mut subnet, mut listed) = match state {
        Some(path) => saved(path, replica, progress)?,
        None => (Subnet::new(replica.inner()), Vec::new()),
    };
    subnet.set_certifier(sign_data);
    let (mut names, mut new, mut notes) = (Names::default(), Vec::new(), Vec::new());
    let id = Principal::from_text(name).ok().filter(|_| state.is_some());
    let callee = match (id, state) {
        (Some(id), Some(path)) => {
            check_exists(&subnet, &id, path)?;
            id
        }
        _ => {
            let (chosen, module) = named(name)?;
            let mut built = canisters::find(module, progress)?;
            let id = place(&mut subnet, &mut listed, 0, &built, module, state)?;
            if let Some(chosen) = chosen {
                built.name = chosen.to_owned();
            }
            names.add(&built.name, id.known());
            new.extend(id.unless_saved(built, None));
            id.known()
        }
    };
    for (at, word) in with.iter().enumerate() {
        let (chosen, module) = named(word)?;
        let mut built = canisters::find(module, progress)?;
        let id = place(&mut subnet, &mut listed, at + 1, &built, module, state)?;
        if let Some(chosen) = chosen {
            built.name = chosen.to_owned();
        }
        names.add(&built.name, id.known());
        notes.push(format!("{} is {}", chosen.unwrap_or(word), id.known()));
        new.extend(id.unless_saved(built, Some(word)));
    }
    let arguments = Arguments::of(install, &names, &new)?;
    let mut interface = None;
    for new in new {
        let mut canister = replica.created_on_subnet(new.id)?;
        if new.other.is_none() {
            environment.set_variables(&mut canister)?;
        }
        let installed = new.install(&mut canister, &arguments, install, replica);
        match &new.other {
            None => interface = Some(installed?),
            Some(word) => drop(installed.with_context(|| format!("--with {word}"))?),
        }
        if new.other.is_none() {
            subnet.set_time(canister.time());
        }
        subnet.add(canister)?;
    }
    notes.iter().for_each(|note| progress.note(note));
    let canister = subnet.canister_mut(&callee).context("the canister is gone")?;
    environment.set_variables(canister)?;
    environment.set_stable_memory(canister)?;
    let interface = match (interface, canister.module()) {
        (Some(interface), _) => interface,
        (None, Some(module)) => {
            Interface::of(module, canister, install.candid.as_deref(), progress)?
        }
        (None, None) => Interface::default(),
    };
    Ok(Loaded { subnet, listed, callee, interface, names })
}

/// The id of a canister.
#[derive(Clone, Copy)]
enum Id {
    Saved(Principal),
    New(Principal),
}

impl Id {
    fn known(self) -> Principal {
        match self {
            Self::Saved(id) | Self::New(id) => id,
        }
    }

    fn unless_saved(self, built: Built, other: Option<&str>) -> Option<New> {
        let Self::New(id) = self else { return None };
        Some(New { id, name: built.name, wasm: built.wasm, other: other.map(str::to_owned) })
    }
}

/// Returns the id of the canister that a command names at a place.
fn place(
    subnet: &mut Subnet,
    listed: &mut Vec<Principal>,
    at: usize,
    built: &Built,
    name: &str,
    state: Option<&Path>,
) -> Result<Id> {
    if let (Some(id), Some(path)) = (listed.get(at), state) {
        check_module(subnet, id, built, name, path)?;
        return Ok(Id::Saved(*id));
    }
    let id = subnet.next_id().context("no canister id is left")?;
    listed.push(id);
    Ok(Id::New(id))
}

/// The arguments of installations, by the id of the canister.
#[derive(Debug, Default)]
pub struct Arguments(Vec<(Principal, Argument)>);

impl Arguments {
    /// Returns the arguments of the canisters that are new.
    ///
    /// # Errors
    ///
    /// If a canister is not new, is not known, or has two.
    pub fn of(install: &InstallArgs, names: &Names, new: &[New]) -> Result<Self> {
        let mut arguments = Self::default();
        let argument = |text: &str| -> Result<Argument> {
            let mut argument = Argument::typed(text)?;
            argument.fill(names)?;
            Ok(argument)
        };
        if let Some(text) = &install.init {
            let first = new.iter().find(|new| new.other.is_none());
            let first = first.context("--init: the canister is saved, and not installed again")?;
            arguments.0.push((first.id, argument(text)?));
        }
        for pair in install.init_of.chunks_exact(2) {
            let (name, text) = (&pair[0], &pair[1]);
            let id = names.id(name).with_context(|| format!("--init-of {name}"))?;
            ensure!(
                new.iter().any(|new| new.id == id),
                "--init-of {name}: the canister is saved, and not installed again"
            );
            ensure!(
                arguments.get(&id).is_none(),
                "{name} has two arguments for its installation; leave one out"
            );
            arguments.0.push((id, argument(text)?));
        }
        Ok(arguments)
    }

    fn get(&self, id: &Principal) -> Option<&Argument> {
        self.0.iter().find(|(of, _)| of == id).map(|(_, argument)| argument)
    }
}

/// Refuses an argument that no message can have: on the network the request does not arrive.
///
/// # Errors
///
/// If it has more bytes than the rules allow.
pub fn check_size(argument: &[u8], rules: Rules, target: &str) -> Result<()> {
    let (bytes, most) = (argument.len() as u64, rules.set().messages.argument.get());
    ensure!(
        bytes <= most,
        "the argument of {target} has {} bytes, and a message at most {}; send it in several messages",
        Grouped(bytes),
        Grouped(most)
    );
    Ok(())
}

/// Upgrades a canister of a subnet. A heap with enhanced orthogonal persistence is kept.
pub fn upgrade(
    subnet: &mut Subnet,
    id: &Principal,
    module: &Module,
    argument: &[u8],
) -> Result<Execution> {
    let canister = subnet.canister_mut(id).context("the canister is gone")?;
    let caller = Principal::anonymous();
    let keeps_heap = canister.module().is_some_and(Module::has_enhanced_persistence);
    Ok(match keeps_heap {
        true => canister.upgrade_keeping_heap(module, caller, argument)?,
        false => canister.upgrade(module, caller, argument)?,
    })
}

/// Loads a subnet, and the ids of the canisters that were named when it was saved.
pub fn saved(
    path: &Path,
    replica: &Embedded,
    progress: &Progress,
) -> Result<(Subnet, Vec<Principal>)> {
    let step = progress.spinner(&format!("loading {}", path.display()));
    let (subnet, note) = replica
        .inner()
        .load_subnet(path)
        .with_context(|| format!("cannot load canisters from {}", path.display()))?;
    step.done("");
    // A file that contains one canister has no note.
    let listed = match note.is_empty() {
        true => subnet.canisters().map(Canister::id).collect(),
        false => note
            .split(' ')
            .map(Principal::from_text)
            .collect::<Result<Vec<_>, _>>()
            .with_context(|| format!("{} does not list its canisters", path.display()))?,
    };
    Ok((subnet, listed))
}

/// Text that lists the canisters of a command, for a saved subnet.
pub fn note(listed: &[Principal]) -> String {
    listed.iter().map(Principal::to_text).collect::<Vec<_>>().join(" ")
}

/// Saves a subnet on which no call is open. The next message comes a second later.
pub fn save(subnet: &mut Subnet, listed: &[Principal], path: &Path) -> Result<()> {
    ensure!(
        subnet.is_idle(),
        "calls are open {MAX_ROUNDS} rounds after the answer, and would be lost; call without --save"
    );
    subnet.set_time(subnet.time() + MESSAGE_INTERVAL);
    Ok(subnet.save(path, &note(listed))?)
}

fn check_exists(subnet: &Subnet, id: &Principal, path: &Path) -> Result<()> {
    let known: Vec<String> = subnet.canisters().map(|canister| canister.id().to_text()).collect();
    ensure!(
        subnet.exists(id),
        "{} contains no canister {id}; it contains {}",
        path.display(),
        super::listed(&id.to_text(), &known)
    );
    Ok(())
}

/// Checks that a saved canister has the module that was named.
fn check_module(
    subnet: &Subnet,
    id: &Principal,
    named: &Built,
    name: &str,
    path: &Path,
) -> Result<()> {
    check_exists(subnet, id, path)?;
    let module = subnet.canister(id).and_then(Canister::module);
    let saved = module.map(|module| hex::encode(module.hash()));
    ensure!(
        saved == Some(canisters::hash(&named.wasm)),
        "{} contains canister {id} with another module than {name}; name the module that was saved, \
         call the canister by its id, or leave out --state",
        path.display()
    );
    Ok(())
}

/// Executes a call, and then the calls whose answers it did not await.
pub fn follow(subnet: &mut Subnet, message: Message<'_>) -> Result<Followed> {
    let Message { callee, method, argument, query } = message;
    let caller = Principal::anonymous();
    if query {
        let call = subnet.query(caller, callee, method, argument)?;
        return Ok(Followed { call, unlisted: 0, unfinished: false });
    }
    let before = subnet.executed();
    let mut call = subnet.update(caller, callee, method, argument)?;
    let mut rounds = 0;
    while !subnet.is_idle() && rounds < MAX_ROUNDS {
        subnet.tick()?;
        call.executions.append(&mut subnet.take_executions());
        rounds += 1;
    }
    let unlisted = (subnet.executed() - before).saturating_sub(call.executions.len() as u64);
    Ok(Followed { call, unlisted, unfinished: !subnet.is_idle() })
}

impl Followed {
    /// Returns the execution of the method that the user called. Heartbeats and timers may come
    /// first.
    pub fn first(&self, method: &str) -> Option<&Executed> {
        let is_it = |it: &&Executed| it.cause.is_none() && it.function.method() == Some(method);
        self.call.executions.iter().find(is_it)
    }

    /// Adds notes on what is missing.
    pub fn note(&self, progress: &Progress) {
        if self.unfinished {
            let rounds = format!("{MAX_ROUNDS} more rounds");
            progress.note(&format!("calls go on after {rounds}, which are not executed"));
        }
        if self.unlisted > 0 {
            let more = Grouped(self.unlisted);
            progress.note(&format!("{more} executions are too many, and not part of the result"));
        }
    }
}

/// Environment variables and stable memory of a canister.
#[derive(Clone, Debug, Default, Args)]
pub struct EnvironmentArgs {
    /// Set an environment variable of each canister before it is installed. Repeat it for other
    /// names. Other variables of a saved canister stay.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub variables: Vec<Variable>,
    /// Replace the stable memory of each canister by the content of this file after it is
    /// installed.
    #[arg(long, value_name = "FILE")]
    pub stable_memory: Option<PathBuf>,
}

/// An environment variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub value: String,
}

/// Parses `NAME=VALUE`. The first `=` ends the name; the value may be empty.
///
/// # Errors
///
/// If the `=` or the name is missing.
fn variable(text: &str) -> Result<Variable, String> {
    match text.split_once('=') {
        None => Err("a variable is NAME=VALUE, where VALUE may be empty".to_owned()),
        Some(("", _)) => Err("a variable has a name: NAME=VALUE".to_owned()),
        Some((name, value)) => Ok(Variable { name: name.to_owned(), value: value.to_owned() }),
    }
}

/// The maximum size of a file for stable memory in bytes: it is read as a whole.
const MAX_FILE: u64 = 16 << 30;

/// Environment variables and initial stable memory.
#[derive(Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    stable_memory: Option<Vec<u8>>,
}

impl Environment {
    /// Converts the options, and reads the file.
    pub fn read(args: &EnvironmentArgs) -> Result<Self> {
        let variables = by_name(&args.variables)?;
        let stable_memory = args.stable_memory.as_deref().map(read_stable_memory).transpose()?;
        Ok(Self { variables, stable_memory })
    }

    /// Sets the variables. Variables with other names stay.
    pub fn set_variables(&self, canister: &mut Canister) -> Result<()> {
        let mut variables = canister.environment().clone();
        variables.extend(self.variables.clone());
        if variables == *canister.environment() {
            return Ok(());
        }
        canister.set_environment(variables).context("--env cannot be set")
    }

    /// Replaces the stable memory, if there is a file.
    pub fn set_stable_memory(&self, canister: &mut Canister) -> Result<()> {
        match &self.stable_memory {
            Some(bytes) => {
                canister.set_stable_memory(bytes).context("--stable-memory cannot be set")
            }
            None => Ok(()),
        }
    }
}

/// Returns the values by name.
///
/// # Errors
///
/// If two variables have the same name.
fn by_name(variables: &[Variable]) -> Result<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    for Variable { name, value } in variables {
        if values.insert(name.clone(), value.clone()).is_some() {
            bail!("--env {name} is given twice; leave one out");
        }
    }
    Ok(values)
}

/// Reads a file for stable memory.
///
/// # Errors
///
/// If it cannot be read, is no regular file, or is larger than 16 GiB.
fn read_stable_memory(path: &Path) -> Result<Vec<u8>> {
    files::read(path, MAX_FILE)
        .with_context(|| format!("cannot read stable memory from {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_equals_sign_ends_the_name() {
        for (text, name, value) in
            [("a=b", "a", "b"), ("a=", "a", ""), ("a=b=c", "a", "b=c"), (" a = b ", " a ", " b ")]
        {
            let expected = Variable { name: name.to_owned(), value: value.to_owned() };
            assert_eq!(variable(text), Ok(expected));
        }
        for text in ["", "a", "=", "=b"] {
            assert!(variable(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_name_the_file_for_stable_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory");
        let error = || format!("{:#}", read_stable_memory(&path).unwrap_err());
        assert!(error().contains(path.to_str().unwrap()), "{}", error());
        let file = std::fs::File::create_new(&path).unwrap();
        assert_eq!(read_stable_memory(&path).unwrap(), b"");
        drop(file);
        std::fs::write(&path, b"some").unwrap();
        assert_eq!(read_stable_memory(&path).unwrap(), b"some");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(error().contains("it is not a regular file"), "{}", error());
    }
}
