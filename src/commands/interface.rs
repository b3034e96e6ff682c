//! Interfaces of canisters, arguments and replies in Candid, and names in place of canisters' ids.
//!
//! The interface is the first of these that exists:
//!
//! ```text
//!   --candid FILE  →  the section candid:service  →  the text of the export get_candid_pointer
//! ```
//!
//! The types of a constructor can be in a section of their own, `candid:args`, as Motoko's compiler
//! writes them.
//!
//! Without one, the text of values determines their types, and replies contain theirs.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use candid::IDLArgs;
use candid::types::{FuncMode, Function, Type, TypeEnv, TypeInner};
use candid_parser::check_prog;
use candid_parser::grammar::{IDLInitArgsParser, IDLProgParser};
use candid_parser::token::Tokenizer;
use candid_parser::typing::check_init_args;
use stablebench_replica::decoding::{decode_untyped, decode_values};
use stablebench_replica::files::{self, MAX_TEXT};
use stablebench_replica::{Canister, MethodKind, Module, Principal};

use super::listed;
use super::nesting::parse_nested;
use crate::progress::Progress;
use crate::terminal::safe_line;

/// The function that modules export if their section with the interface is added later: its result
/// is the address of the interface.
const EXPORT: &str = "get_candid_pointer";
/// The most bytes of a file with an argument: more than a message can have.
pub const MAX_ARGUMENT: u64 = 64 << 20;
/// The characters of a type in an error.
const MAX_TYPE: usize = 400;
/// The characters before and after a mistake that an error shows.
const AROUND: usize = 30;

/// The interface of a canister, if it is known.
#[derive(Clone, Debug, Default)]
pub struct Interface(Option<(TypeEnv, Type)>);

/// A method of a canister.
#[derive(Clone, Debug)]
pub struct Method {
    pub name: String,
    /// True if it is called as a query.
    pub query: bool,
    types: Option<(TypeEnv, Function)>,
}

/// The argument of a call or of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Values as Candid text.
    Text(String),
    /// Bytes, which are sent as they are.
    Bytes(Vec<u8>),
}

impl Argument {
    /// Returns the argument that an option has: Candid text, or `@FILE` with the text or bytes.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn typed(text: &str) -> Result<Self> {
        match text.strip_prefix('@') {
            Some(path) => {
                let bytes = files::read(Path::new(path), MAX_ARGUMENT);
                Ok(Self::of(bytes.with_context(|| format!("cannot read {path}"))?))
            }
            None => Ok(Self::Text(text.to_owned())),
        }
    }

    /// Returns the argument in a file: Candid in bytes begins with `DIDL`, and as text with a
    /// parenthesis.
    pub fn of(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) if text.trim_start().starts_with('(') => Self::Text(text),
            Ok(text) => Self::Bytes(text.into_bytes()),
            Err(error) => Self::Bytes(error.into_bytes()),
        }
    }

    /// Replaces the names of canisters in a text by their ids.
    ///
    /// # Errors
    ///
    /// If there is no such canister.
    pub fn fill(&mut self, names: &Names) -> Result<()> {
        if let Self::Text(text) = self {
            *text = names.fill(text)?;
        }
        Ok(())
    }
}

impl Interface {
    /// Returns the interface of a module, or that in the file of `--candid`. If its export is broken,
    /// a note says so.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, if the interface is no valid Candid, or if the host has no memory
    /// left.
    pub fn of(
        module: &Module,
        canister: &Canister,
        file: Option<&Path>,
        progress: &Progress,
    ) -> Result<Self> {
        if let Some(path) = file {
            return Self::read(path);
        }
        let section = |name| {
            let section = module.info().custom_sections.get(name)?;
            std::str::from_utf8(&section.content).ok().map(str::to_owned)
        };
        let text = match section("candid:service") {
            Some(text) => text,
            None => match canister.exported_text(module, EXPORT)? {
                Some(Ok(text)) => text,
                Some(Err(error)) => {
                    progress.note(&format!(
                        "the interface is not taken from the export {EXPORT}: {}; give it with \
                         --candid FILE",
                        safe_line(&error.to_string())
                    ));
                    return Ok(Self::default());
                }
                None => return Ok(Self::default()),
            },
        };
        let interface = Self::parse(&text)
            .and_then(|interface| interface.constructed_with(section("candid:args").as_deref()));
        interface.context("give another one with --candid FILE")
    }

    /// Adds the types of a constructor in the section `candid:args`.
    fn constructed_with(self, arguments: Option<&str>) -> Result<Self> {
        let (Self(Some((env, actor))), Some(text)) = (&self, arguments) else { return Ok(self) };
        const INVALID: &str = "the canister's candid:args is not valid Candid";
        let parse = || {
            let program = IDLInitArgsParser::new()
                .parse(None, Tokenizer::new(text))
                .map_err(|error| anyhow!("{INVALID}: {}", mistake(text, &error.into())))?;
            let mut merged = TypeEnv::new();
            check_init_args(&mut merged, env, &program)
                .map(|types| (merged, types))
                .map_err(|error| anyhow!("{INVALID}: {error}"))
        };
        let (merged, types) =
            parse_nested(text, parse).map_err(|error| anyhow!("{INVALID}: {error}"))??;
        let service = match actor.as_ref() {
            TypeInner::Class(_, service) => service.clone(),
            _ => actor.clone(),
        };
        Ok(Self(Some((merged, TypeInner::Class(types, service).into()))))
    }

    /// Reads the interface in a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is no valid interface.
    pub fn read(path: &Path) -> Result<Self> {
        let text = files::read_text(path, MAX_TEXT)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    /// Parses an interface.
    ///
    /// # Errors
    ///
    /// If it is no valid Candid, or names no service.
    pub fn parse(text: &str) -> Result<Self> {
        const INVALID: &str = "the canister's interface is not valid Candid";
        let parse = || {
            // With comments, the parser looks for the end of the line after each word.
            let program = IDLProgParser::new()
                .parse(None, Tokenizer::new(text))
                .map_err(|error| anyhow!("{INVALID}: {}", mistake(text, &error.into())))?;
            let mut env = TypeEnv::new();
            let actor =
                check_prog(&mut env, &program).map_err(|error| anyhow!("{INVALID}: {error}"))?;
            let actor = actor.context("the canister's interface names no service")?;
            Ok(Self(Some((env, actor))))
        };
        parse_nested(text, parse)
            .map_err(|error| anyhow!("the canister's interface is refused: {error}"))?
    }

    /// Returns a method of a module with this interface.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn method(&self, name: &str, module: &Module) -> Result<Method> {
        if let Ok(method) = self.described(name) {
            return Ok(method);
        }
        let name = name.to_owned();
        let methods = &module.info().methods;
        match methods.iter().find(|method| method.name == name) {
            Some(method) => {
                Ok(Method { name, query: method.kind != MethodKind::Update, types: None })
            }
            None => bail!("the canister has no method {name}; {}", self.methods(&name, module)),
        }
    }

    /// Returns the method with this name of an interface that is known.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn described(&self, name: &str) -> Result<Method> {
        let types = self.0.as_ref().and_then(|(env, actor)| {
            let function = env.get_method(actor, name).ok()?;
            Some((env.clone(), function.clone()))
        });
        let Some((_, function)) = &types else {
            bail!("the canister has no method {name}; it has {}", listed(name, &self.names()));
        };
        Ok(Method { name: name.to_owned(), query: is_query(function), types })
    }

    /// Lists the methods, for an error about this name.
    pub fn methods(&self, wanted: &str, module: &Module) -> String {
        let mut names = self.names();
        if names.is_empty() {
            names.extend(module.info().methods.iter().map(|method| method.name.clone()));
        }
        match names.is_empty() {
            true => "it has none".to_owned(),
            false => format!("it has {}", listed(wanted, &names)),
        }
    }

    fn names(&self) -> Vec<String> {
        let methods = self.0.as_ref().and_then(|(env, actor)| env.as_service(actor).ok());
        methods.into_iter().flatten().map(|(name, _)| name.clone()).collect()
    }

    /// Encodes the argument of an installation: of the canister `name`, by `option`. Without one, the
    /// installation has no values.
    ///
    /// # Errors
    ///
    /// If it does not fit the constructor.
    pub fn constructor(
        &self,
        argument: Option<&Argument>,
        name: &str,
        option: &str,
    ) -> Result<Vec<u8>> {
        let Some((env, actor)) = &self.0 else {
            return encoded(argument, None, || format!("the installation of {name}"));
        };
        let types = match env.trace_type(actor)?.as_ref() {
            TypeInner::Class(types, _) => types.clone(),
            _ => Vec::new(),
        };
        let written = encoded(argument, Some((env, &types)), || {
            format!("the installation of {name}, which takes {}", shown(env, &types))
        });
        match argument {
            Some(Argument::Text(text)) if types.is_empty() && text.trim() != "()" => {
                bail!(
                    "{name} is installed without arguments, so {option} {} does not fit",
                    short(text)
                )
            }
            None if written.is_err() => bail!(
                "{name} is installed with arguments of the type {}; give them: {option} '(…)'",
                shown(env, &types)
            ),
            _ => written,
        }
    }
}

impl Method {
    /// Encodes the argument of a call; without one, there are no values.
    ///
    /// # Errors
    ///
    /// If it does not fit the method.
    pub fn encode(&self, argument: Option<&Argument>) -> Result<Vec<u8>> {
        let name = &self.name;
        let Some((env, function)) = &self.types else {
            return encoded(argument, None, || name.clone());
        };
        let written = encoded(argument, Some((env, &function.args)), || {
            format!("{name}, which takes {}", shown(env, &function.args))
        });
        match argument {
            None if written.is_err() => bail!(
                "{name} takes {}; write the values behind it: {name} '(…)'",
                shown(env, &function.args)
            ),
            _ => written,
        }
    }

    /// Returns a reply as Candid text, or in hexadecimal if it is no Candid.
    ///
    /// # Errors
    ///
    /// If it does not have the type of the interface.
    pub fn decode(&self, reply: &[u8]) -> Result<String> {
        let values = match &self.types {
            // The error's other lines have the whole reply.
            Some((env, function)) => {
                decode_values(reply, env, &function.rets).map_err(|error| {
                    let error = error.to_string();
                    let error = short(error.lines().next().unwrap_or_default());
                    anyhow!("the reply is not of the method's type: {error}")
                })?
            }
            None => match decode_untyped(reply) {
                Ok(values) => values,
                Err(_) => return Ok(format!("0x{}", hex::encode(reply))),
            },
        };
        Ok(values.to_string())
    }
}

/// Encodes an argument for `target`, by types that may be unknown.
fn encoded(
    argument: Option<&Argument>,
    types: Option<(&TypeEnv, &[Type])>,
    target: impl Fn() -> String,
) -> Result<Vec<u8>> {
    let text = match argument {
        Some(Argument::Bytes(bytes)) => return Ok(bytes.clone()),
        Some(Argument::Text(text)) => text,
        None => "()",
    };
    let values = parse_arguments(text)?;
    let bytes = match types {
        Some((env, types)) => {
            ensure!(
                values.args.len() <= types.len(),
                "the arguments {} do not fit {}: there are {} values too many",
                short(text),
                target(),
                values.args.len() - types.len()
            );
            values.to_bytes_with_types(env, types)
        }
        None => values.to_bytes(),
    };
    bytes.map_err(|error| anyhow!("the arguments {} do not fit {}: {error}", short(text), target()))
}

/// Parses arguments in Candid text.
///
/// # Errors
///
/// If they are not Candid; the place is marked.
fn parse_arguments(text: &str) -> Result<IDLArgs> {
    let parsed = parse_nested(text, || candid_parser::parse_idl_args(text))
        .map_err(|error| anyhow!("the arguments are refused: {error}"))?;
    parsed.map_err(|error| {
        let hint = match text.trim_start().starts_with('(') {
            true => "text is in quotes, as in '(\"hi\", 1)'",
            false => "arguments are in parentheses, and text in quotes: '(\"hi\", 1)'",
        };
        anyhow!("the arguments are not Candid: {}\n{hint}", mistake(text, &error))
    })
}

/// Describes what is wrong with a text, and marks the place in it.
fn mistake(text: &str, error: &candid_parser::Error) -> String {
    let report = error.report();
    let Some(label) = report.labels.first() else { return error.to_string() };
    let at = |byte: usize| {
        let byte = (0..=byte.min(text.len())).rev().find(|byte| text.is_char_boundary(*byte));
        byte.unwrap_or_default()
    };
    let (start, end) = (at(label.range.start), at(label.range.end.max(label.range.start)));
    let line = text[..start].matches('\n').count() + 1;
    let begins = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let ends = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
    let before: Vec<char> = text[begins..start].chars().collect();
    let cut = before.len().saturating_sub(AROUND);
    let before: String = before[cut..].iter().collect();
    let marked = text[start..end.min(ends)].chars().count().clamp(1, AROUND);
    let after: String = text[start..ends].chars().take(2 * AROUND).collect();
    let before = safe_line(&before).into_owned();
    let mut message = label.message.to_lowercase();
    for note in &report.notes {
        // The list of what is expected is longer than a line if it helps nobody.
        let note = note.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        if note.chars().count() <= 2 * AROUND {
            let _ = write!(message, ", {note}");
        }
    }
    if line > 1 {
        let _ = write!(message, " in line {line}");
    }
    let indent = " ".repeat(before.chars().count());
    format!("{message}\n  {before}{}\n  {indent}{}", safe_line(&after), "^".repeat(marked))
}

/// Returns types in one line, each by its definition if it has a name.
fn shown(env: &TypeEnv, types: &[Type]) -> String {
    let mut texts = Vec::new();
    for ty in types {
        let ty = env.trace_type(ty).unwrap_or_else(|_| ty.clone());
        texts.push(ty.to_string().split_whitespace().collect::<Vec<_>>().join(" "));
    }
    let text = format!("({})", texts.join(", "));
    match text.char_indices().nth(MAX_TYPE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns the beginning of arguments, for an error.
fn short(text: &str) -> String {
    let text = safe_line(text).into_owned();
    match text.char_indices().nth(4 * AROUND) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn is_query(function: &Function) -> bool {
    let queries = [FuncMode::Query, FuncMode::CompositeQuery];
    function.modes.iter().any(|mode| queries.contains(mode))
}

/// Names of canisters, and their ids.
#[derive(Clone, Debug, Default)]
pub struct Names(Vec<(String, Principal)>);

impl Names {
    pub fn add(&mut self, name: &str, id: Principal) {
        self.0.push((name.to_owned(), id));
    }

    /// The name of a canister, or its id in text.
    pub fn of(&self, id: &Principal) -> String {
        let known = self.0.iter().find(|(_, known)| known == id);
        known.map_or_else(|| id.to_text(), |(name, _)| name.clone())
    }

    /// Returns the id of the only canister with a name.
    ///
    /// # Errors
    ///
    /// If there is none, or several.
    pub fn id(&self, name: &str) -> Result<Principal> {
        let mut found = self.0.iter().filter(|(known, _)| known == name).map(|(_, id)| *id);
        match (found.next(), found.next()) {
            (Some(id), None) => Ok(id),
            (Some(_), Some(_)) => {
                bail!("several canisters are called {name}; give them names: --with NAME=FILE")
            }
            (None, _) => {
                let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
                bail!("there is no canister {name}; there is {}", listed(name, &names))
            }
        }
    }

    /// Replaces `{NAME}`, but not [`NUMBER`], in the quoted texts of Candid by the id of that canister.
    ///
    /// # Errors
    ///
    /// If a principal is `{NAME}` and there is no such canister.
    pub fn fill(&self, candid: &str) -> Result<String> {
        let (mut filled, mut rest) = (String::new(), candid);
        let (mut quoted, mut escaped) = (false, false);
        while let Some(letter) = rest.chars().next() {
            if quoted
                && letter == '{'
                && let Some(end) = rest.find('}')
                && named_by(&rest[1..end])
                && &rest[1..end] != NUMBER
            {
                let name = &rest[1..end];
                // Braces in other texts can be anything.
                let known = self.0.iter().any(|(known, _)| known == name);
                if known || filled.trim_end_matches('"').trim_end().ends_with("principal") {
                    filled += &self.id(name)?.to_text();
                    rest = &rest[end + 1..];
                    continue;
                }
            }
            if letter == '"' && !escaped {
                quoted = !quoted;
            }
            escaped = letter == '\\' && !escaped;
            filled.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
        Ok(filled)
    }
}

/// The placeholder of `--repeat`: `{i}` is the number of the call. No canister may have this name.
const NUMBER: &str = "i";

/// Splits `NAME=CANISTER` into the name, if there is one, and the canister.
///
/// # Errors
///
/// If the name is that of a number.
pub fn named(word: &str) -> Result<(Option<&str>, &str)> {
    match word.split_once('=') {
        Some((name, canister)) if named_by(name) => {
            ensure!(
                name != NUMBER,
                "{word}: {{i}} is the number of a call with --repeat; choose another name than i"
            );
            Ok((Some(name), canister))
        }
        _ => Ok((None, word)),
    }
}

/// True if a word can be the name of a canister.
fn named_by(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|it| it.is_alphanumeric() || it == '_' || it == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(ty: &str) -> String {
        format!("service : {{ f : ({ty}) -> ({ty}) query }}")
    }

    /// Work that grows with the square of the number of methods would take minutes.
    #[test]
    fn many_methods_take_no_time() {
        let method = |number| format!("method_{number} : (record {{ a : nat }}) -> (nat) query;");
        let methods: String = (0..40_000).map(method).collect();
        let began = std::time::Instant::now();
        let interface = Interface::parse(&format!("service : {{ {methods} }}")).unwrap();
        interface.described("method_39999").unwrap();
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    }

    #[test]
    fn deep_interfaces_and_arguments_are_refused() {
        let records = |depth: usize| "record { ".repeat(depth) + "nat" + &"}".repeat(depth);
        let options = |depth: usize| "opt vec ".repeat(depth) + "nat";
        for (fits, deep) in [(records(1_000), records(100_000)), (options(700), options(100_000))] {
            Interface::parse(&interface(&fits)).unwrap();
            let error = Interface::parse(&interface(&deep)).unwrap_err().to_string();
            assert!(error.contains("levels deep"), "{error}");
        }
        // Sequences are not nested.
        let wide = "record { a : opt nat; b : vec opt nat; c : func (opt nat, vec nat) -> () }; ";
        Interface::parse(&interface(&format!("record {{ {} }}", wide.repeat(500)))).unwrap();
        let named = |count: usize| -> String {
            let types = (0..count).map(|at| format!("type t{at} = opt t{};", at + 1));
            types.collect::<String>() + &format!("type t{count} = nat;") + &interface("t0")
        };
        let flat = |number| format!("type t{number} = record {{ a : opt nat }};");
        let flat: String = (0..1_600).map(flat).collect();
        Interface::parse(&(flat + &interface("t0"))).unwrap();
        let method = Interface::parse(&named(1_200)).unwrap().described("f").unwrap();
        assert!(method.encode(Some(&Argument::Text("(opt opt 1)".to_owned()))).is_err());
        assert!(Interface::parse(&named(100_000)).is_err());
        assert!(parse_arguments(&("opt ".repeat(100_000) + "1")).is_err());
        assert!(parse_arguments("(vec { opt 1; opt 2 }, \"{{{\")").is_ok());
    }

    #[test]
    fn the_deepest_candid_fits_the_stack_of_the_main_thread() {
        let run = || {
            let options = |depth: usize, inner: &str| "opt ".repeat(depth) + inner;
            // Brackets are a level.
            drop(parse_arguments(&format!("({})", options(2_999, "1"))).unwrap());
            let error = parse_arguments(&format!("({})", options(3_000, "1"))).unwrap_err();
            assert!(error.to_string().contains("3001 levels deep"), "{error}");
            let parsed = Interface::parse(&interface(&options(2_990, "nat"))).unwrap();
            let argument = Argument::Text(format!("({})", options(2_990, "1")));
            parsed.described("f").unwrap().encode(Some(&argument)).unwrap();
        };
        std::thread::Builder::new().stack_size(8 << 20).spawn(run).unwrap().join().unwrap();
    }

    #[test]
    fn names_in_quotes_become_ids() {
        let mut names = Names::default();
        let (bank, shop) = (Principal::from_slice(&[1]), Principal::from_slice(&[2]));
        names.add("bank", bank);
        names.add("shop", shop);
        names.add("shop", bank);
        let text =
            "(record { bank = principal \"{bank}\"; a = \"\\\"{bank}.example {no}\" }, {bank})";
        let expected = text.replace("\"{bank}\"", &format!("\"{bank}\""));
        let expected = expected.replace("{bank}.", &format!("{bank}."));
        assert_eq!(names.fill(text).unwrap(), expected);
        let error = |text| names.fill(text).unwrap_err().to_string();
        assert!(error("principal \"{bnak}\"").contains("no canister bnak; there is bank, shop"));
        assert!(error("(\"{shop}\")").contains("several canisters are called shop"));
        assert_eq!(named("a=b.wasm").unwrap(), (Some("a"), "b.wasm"));
        assert_eq!(named("./a=b.wasm").unwrap(), (None, "./a=b.wasm"));
        assert!(named("i=b.wasm").unwrap_err().to_string().contains("another name than i"));
        // The name of a file.
        names.add("i", bank);
        assert_eq!(names.fill("(principal \"{i}\")").unwrap(), "(principal \"{i}\")");
        assert_eq!(names.of(&shop), "shop");
    }
}
