//! The nesting of Candid in text, which is limited: traversing types and values takes stack.
//!
//! A text is a list of definitions, of which the last has what follows them: a service, or values. A
//! definition is as deep as its brackets, or as a definition that it names, at the place of the name:
//!
//! ```text
//!   type a = vec opt b;   2 + depth of b
//!   type b = record { nat; nat };   1
//! ```
//!
//! Types that contain themselves are traversed once each, so a path through such types has at most
//! the sum of their depths.

use std::collections::HashMap;

use candid_parser::token::{Token, Tokenizer};

/// The maximum nesting.
const MAX_DEPTH: usize = 3_000;
/// The stack for it: up to 10 KiB a level, since the parser is compiled without optimisation.
const STACK: usize = 32 << 20;

/// A definition.
#[derive(Default)]
struct Definition {
    /// The depth of its brackets.
    depth: usize,
    /// The words in it, which may name definitions, and their depths.
    words: Vec<(String, usize)>,
}

/// Parses Candid on a stack for the maximum nesting. Refuses a text whose types or values can be nested
/// more deeply, by name too.
///
/// # Errors
///
/// A sentence with the depth.
pub fn parse_nested<T>(text: &str, parse: impl FnOnce() -> T) -> Result<T, String> {
    let (names, definitions) = definitions(text);
    match depth(&names, &definitions) {
        deep if deep > MAX_DEPTH => Err(format!(
            "its types or values can be nested {deep} levels deep; the maximum is {MAX_DEPTH}"
        )),
        _ => Ok(stacker::grow(STACK, parse)),
    }
}

/// Splits a text into definitions, and returns those that have a name.
fn definitions(text: &str) -> (HashMap<String, usize>, Vec<Definition>) {
    let mut names = HashMap::new();
    let mut all = vec![Definition::default()];
    // The levels that an unfinished field or parameter has opened itself, by bracket.
    let mut open: Vec<usize> = vec![0];
    let mut depth = 0_usize;
    let mut tokens = Tokenizer::new(text).map_while(Result::ok).map(|(_, token, _)| token);
    while let Some(token) = tokens.next() {
        match token {
            Token::LBrace | Token::LParen => {
                depth += 1;
                open.push(0);
            }
            Token::RBrace | Token::RParen if open.len() > 1 => {
                depth -= 1 + open.pop().unwrap_or_default();
            }
            Token::Semi | Token::Comma => {
                depth -= open.last_mut().map(std::mem::take).unwrap_or_default();
                if matches!(token, Token::Semi) && open.len() == 1 {
                    // What follows the definitions is one, too.
                    all.push(Definition::default());
                }
            }
            Token::Opt | Token::Vec => {
                depth += 1;
                open.last_mut().into_iter().for_each(|last| *last += 1);
            }
            Token::Type => {
                if let Some(Token::Id(name)) = tokens.next() {
                    names.insert(name, all.len() - 1);
                }
            }
            Token::Id(word) => {
                if let Some(last) = all.last_mut() {
                    last.words.push((word, depth));
                }
            }
            _ => {}
        }
        if let Some(last) = all.last_mut() {
            last.depth = last.depth.max(depth);
        }
    }
    (names, all)
}

/// Returns the depth of the deepest definition.
fn depth(names: &HashMap<String, usize>, definitions: &[Definition]) -> usize {
    let named = |of: &Definition| -> Vec<(usize, usize)> {
        let words = of.words.iter();
        words.filter_map(|(word, depth)| Some((*names.get(word)?, depth + 1))).collect()
    };
    let uses: Vec<Vec<(usize, usize)>> = definitions.iter().map(named).collect();
    let mut used_by = vec![Vec::new(); definitions.len()];
    for (user, of) in uses.iter().enumerate() {
        of.iter().for_each(|(used, _)| used_by[*used].push(user));
    }
    let mut depths: Vec<usize> = definitions.iter().map(|it| it.depth).collect();
    let deepen = |depths: &mut Vec<usize>, user: usize| {
        let through = uses[user].iter().map(|(used, at)| at + depths[*used]);
        depths[user] = through.max().unwrap_or_default().max(depths[user]);
    };
    // From below: definitions after all that they name. Those that are left name themselves, or such
    // ones.
    let counts: Vec<usize> = uses.iter().map(Vec::len).collect();
    let below = ordered(&counts, |used| used_by[used].iter().copied());
    let mut rest = vec![true; definitions.len()];
    for user in below {
        deepen(&mut depths, user);
        rest[user] = false;
    }
    // From above, among the rest: those after all that name them. What is left is a knot.
    let left = |from: &[usize]| from.iter().filter(|other| rest[**other]).count();
    let counts: Vec<usize> = used_by
        .iter()
        .enumerate()
        .map(|(used, by)| if rest[used] { left(by) } else { usize::MAX })
        .collect();
    let above = ordered(&counts, |user| {
        uses[user].iter().map(|(used, _)| *used).filter(|used| rest[*used])
    });
    let mut knot = rest.clone();
    above.iter().for_each(|user| knot[*user] = false);
    let tied = || (0..definitions.len()).filter(|at| knot[*at]);
    let own: usize = tied().map(|at| definitions[at].depth + 1).sum();
    let outside = tied().flat_map(|at| &uses[at]).filter(|(used, _)| !knot[*used]);
    let all = own + outside.map(|(used, at)| at + depths[*used]).max().unwrap_or_default();
    tied().for_each(|at| depths[at] = all);
    above.iter().rev().for_each(|user| deepen(&mut depths, *user));
    depths.into_iter().max().unwrap_or_default()
}

/// Returns the nodes of a graph, each after the `counts` nodes that lead to it. Those of circles, and
/// what they lead to, are missing.
fn ordered<I: Iterator<Item = usize>>(
    counts: &[usize],
    leads_to: impl Fn(usize) -> I,
) -> Vec<usize> {
    let mut counts = counts.to_vec();
    let mut order: Vec<usize> = (0..counts.len()).filter(|node| counts[*node] == 0).collect();
    let mut next = 0;
    while let Some(node) = order.get(next).copied() {
        next += 1;
        for other in leads_to(node) {
            counts[other] -= 1;
            if counts[other] == 0 {
                order.push(other);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deep(text: &str) -> usize {
        let (names, definitions) = definitions(text);
        depth(&names, &definitions)
    }

    #[test]
    fn definitions_are_as_deep_as_what_they_name() {
        for (text, expected) in [
            ("nat", 0),
            ("(vec { opt 1; opt 2 }, \"{{{\")", 4),
            ("opt vec nat", 2),
            ("type a = nat; service : { f : (a) -> () }", 3),
            ("type a = opt b; type b = vec nat; service : { f : (a) -> () }", 2 + 1 + 1 + 1 + 1),
            // In any order, and through the deeper one.
            ("type c = a; type a = record { b }; type b = opt opt opt nat; service : {}", 6),
            // Itself, each other, with others above and below.
            ("type a = opt a; service : {}", 2),
            (
                "type a = opt b; type b = record { a; c }; type c = opt nat; service : {}",
                2 + 2 + 2 + 1,
            ),
            ("type d = opt a; type a = opt b; type b = opt a; service : {}", 2 + 2 + 2),
        ] {
            assert_eq!(deep(text), expected, "{text}");
        }
    }

    #[test]
    fn the_number_of_definitions_is_no_depth() {
        let flat = |number: usize| format!("type t{number} = record {{ a : opt nat; b : value }};");
        let value = "type value = variant { one : nat; many : vec value };";
        let many: String = (0..20_000).map(flat).collect();
        assert_eq!(deep(&format!("{value}{many} service : {{}}")), 1 + 1 + 3);
        let chain = |count: usize| -> String {
            let link = |at: usize| format!("type t{at} = opt t{};", at + 1);
            (0..count).map(link).collect::<String>() + "service : {}"
        };
        parse_nested(&chain(1_200), || ()).unwrap();
        let error = parse_nested(&chain(100_000), || ()).unwrap_err();
        assert!(error.contains("levels deep"), "{error}");
    }
}
