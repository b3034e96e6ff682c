//! SQL as text: statements in a longer text, and what the first words of a statement say.
//!
//! A statement ends at a semicolon outside of strings, quoted names and comments. In `CREATE TRIGGER`,
//! it ends at the semicolon after an `END` that follows a semicolon, as in `sqlite3_complete`:
//!
//! ```text
//!   CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; END;
//!                                                        │  │  └ ends the statement
//!                                                        └──┴ the semicolon, then END
//! ```

/// A token of a text, with the range of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token<'a> {
    kind: TokenKind<'a>,
    end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind<'a> {
    Semicolon,
    /// White space or a comment.
    Space,
    /// A keyword or a name without quotes.
    Word(&'a str),
    /// A parameter with its sign: `:id`, `@id`, `$id`, `?1`, `?`.
    Parameter(&'a str),
    /// A string, a quoted name, a blob, a number or an operator.
    Other,
    /// A string, a quoted name or a comment without an end.
    Open,
}

/// Returns the token at a byte, which is one of the text.
fn token(text: &str, start: usize) -> Token<'_> {
    let bytes = text.as_bytes();
    let until = |from: usize, end: &str| text[from..].find(end).map(|at| from + at + end.len());
    let token = |kind, end| Token { kind, end };
    let run = |from: usize, belongs: fn(u8) -> bool| {
        bytes[from..].iter().position(|byte| !belongs(*byte)).map_or(bytes.len(), |at| from + at)
    };
    match bytes[start] {
        b';' => token(TokenKind::Semicolon, start + 1),
        b' ' | b'\t' | b'\n' | b'\r' | 0x0c => token(
            TokenKind::Space,
            run(start, |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)),
        ),
        b'-' if bytes.get(start + 1) == Some(&b'-') => {
            token(TokenKind::Space, until(start, "\n").unwrap_or(bytes.len()))
        }
        b'/' if bytes.get(start + 1) == Some(&b'*') => match until(start + 2, "*/") {
            Some(end) => token(TokenKind::Space, end),
            None => token(TokenKind::Open, bytes.len()),
        },
        // A doubled quote is read as the end of one string and the beginning of the next.
        quote @ (b'\'' | b'"' | b'`') => {
            match bytes[start + 1..].iter().position(|byte| *byte == quote) {
                Some(at) => token(TokenKind::Other, start + at + 2),
                None => token(TokenKind::Open, bytes.len()),
            }
        }
        b'[' => match until(start, "]") {
            Some(end) => token(TokenKind::Other, end),
            None => token(TokenKind::Open, bytes.len()),
        },
        b':' | b'@' | b'$' | b'?' => {
            let end = run(start + 1, in_word);
            token(TokenKind::Parameter(&text[start..end]), end)
        }
        byte if in_word(byte) => {
            let end = run(start, in_word);
            let kind = if byte.is_ascii_digit() {
                TokenKind::Other
            } else {
                TokenKind::Word(&text[start..end])
            };
            token(kind, end)
        }
        _ => token(TokenKind::Other, start + 1),
    }
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The tokens of a text.
fn tokens(text: &str) -> impl Iterator<Item = (usize, Token<'_>)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let found = (start < text.len()).then(|| (start, token(text, start)))?;
        start = found.1.end;
        Some(found)
    })
}

/// The place in a statement, for the end of triggers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    /// After `EXPLAIN`, `QUERY` or `PLAN`.
    Explain,
    /// After `CREATE`, `TEMP` or `TEMPORARY`.
    Create,
    /// In a statement that is no trigger.
    Normal,
    /// In a trigger; after a semicolon in it; after its `END`.
    Trigger,
    TriggerSemicolon,
    TriggerEnd,
}

/// The end of the first statement of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Behind its semicolon.
    At(usize),
    /// The text ends first. `true` if it contains more than space and comments.
    Missing(bool),
}

/// Finds the end of the first statement of a text.
pub fn end(text: &str) -> End {
    let mut place = Place::Start;
    let mut open = false;
    for (_, token) in tokens(text) {
        let word = |expected: &str| matches!(token.kind, TokenKind::Word(word) if word.eq_ignore_ascii_case(expected));
        place = match (place, token.kind) {
            (_, TokenKind::Space) => place,
            (
                Place::Start | Place::Explain | Place::Create | Place::Normal | Place::TriggerEnd,
                TokenKind::Semicolon,
            ) => {
                return End::At(token.end);
            }
            (Place::Trigger | Place::TriggerSemicolon, TokenKind::Semicolon) => {
                Place::TriggerSemicolon
            }
            (Place::Start | Place::Explain, _) if word("create") => Place::Create,
            (Place::Start, _) if word("explain") => Place::Explain,
            (Place::Explain, _) if word("query") || word("plan") => Place::Explain,
            (Place::Create, _) if word("temp") || word("temporary") => Place::Create,
            (Place::Create, _) if word("trigger") => Place::Trigger,
            (Place::TriggerSemicolon, _) if word("end") => Place::TriggerEnd,
            (Place::Trigger | Place::TriggerSemicolon | Place::TriggerEnd, _) => Place::Trigger,
            _ => Place::Normal,
        };
        open |= token.kind == TokenKind::Open;
    }
    End::Missing(open || place != Place::Start)
}

/// A statement of a text, without the space around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// The statement, with its semicolon if it has one.
    pub text: &'a str,
    /// The line of its first word, from 1.
    pub line: usize,
}

/// Splits a text into statements. The last one may have no semicolon. Empty ones are left out.
pub fn statements(text: &str) -> Vec<Statement<'_>> {
    let mut found = Vec::new();
    let (mut start, mut line) = (0, 1);
    while start < text.len() {
        let rest = &text[start..];
        let (length, is_empty) = match end(rest) {
            End::At(end) => (end, begins_with_semicolon(rest)),
            End::Missing(more) => (rest.len(), !more),
        };
        if !is_empty {
            let skipped = leading_space(rest);
            let newlines = rest[..skipped].matches('\n').count();
            found.push(Statement { text: rest[skipped..length].trim_end(), line: line + newlines });
        }
        line += rest[..length].matches('\n').count();
        start += length;
    }
    found
}

/// Returns the bytes of space and comments at the beginning.
fn leading_space(text: &str) -> usize {
    tokens(text)
        .find(|(_, token)| token.kind != TokenKind::Space)
        .map_or(text.len(), |(start, _)| start)
}

fn begins_with_semicolon(text: &str) -> bool {
    text[leading_space(text)..].starts_with(';')
}

/// Returns the first word of a statement, if it begins with one.
pub fn first_word(text: &str) -> Option<&str> {
    words(text).next().filter(|_| {
        matches!(
            token(text, leading_space(text).min(text.len().saturating_sub(1))).kind,
            TokenKind::Word(_)
        )
    })
}

/// Returns the words of a text that are neither in strings nor in comments.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    tokens(text).filter_map(|(_, token)| match token.kind {
        TokenKind::Word(word) => Some(word),
        _ => None,
    })
}

/// The part of a statement in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// `BEGIN`
    Begin,
    /// `COMMIT` or `END`
    Commit,
    /// `ROLLBACK`, not to a savepoint.
    Rollback,
    /// Any other statement.
    None,
}

/// Returns the part of a statement in a transaction.
pub fn control(statement: &str) -> Control {
    let mut words = words(statement);
    let first = first_word(statement).unwrap_or_default().to_ascii_lowercase();
    match first.as_str() {
        "begin" => Control::Begin,
        "commit" | "end" => Control::Commit,
        "rollback" if !words.any(|word| word.eq_ignore_ascii_case("to")) => Control::Rollback,
        _ => Control::None,
    }
}

/// Returns `true` if a statement surely changes nothing: a query, or the explanation of a statement.
pub fn only_reads(statement: &str) -> bool {
    let first = first_word(statement).unwrap_or_default().to_ascii_lowercase();
    match first.as_str() {
        "select" | "values" | "explain" => true,
        "with" => {
            let changes = ["insert", "update", "delete", "replace"];
            !words(statement).any(|word| changes.iter().any(|it| word.eq_ignore_ascii_case(it)))
        }
        _ => false,
    }
}

/// Replaces named parameters by numbered ones, and returns the text and the names in their order.
///
/// ```text
///   SELECT :id, ':id', :id + :n   →   SELECT ?1, ':id', ?1 + ?2     [id, n]
/// ```
pub fn numbered(text: &str) -> (String, Vec<&str>) {
    let mut names: Vec<&str> = Vec::new();
    let mut numbered = String::with_capacity(text.len());
    for (start, token) in tokens(text) {
        match token.kind {
            TokenKind::Parameter(name) if name.len() > 1 && name.starts_with([':', '@', '$']) => {
                let place =
                    names.iter().position(|known| *known == &name[1..]).unwrap_or_else(|| {
                        names.push(&name[1..]);
                        names.len() - 1
                    });
                numbered += &format!("?{}", place + 1);
            }
            _ => numbered += &text[start..token.end],
        }
    }
    (numbered, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        statements(text).iter().map(|statement| statement.text).collect()
    }

    #[test]
    fn a_statement_ends_at_a_semicolon_outside_of_strings_and_comments() {
        assert_eq!(texts("select 1; select 2"), ["select 1;", "select 2"]);
        assert_eq!(texts("select ';', \";\", [;], `;`; x"), ["select ';', \";\", [;], `;`;", "x"]);
        assert_eq!(texts("select 'it''s;'; x"), ["select 'it''s;';", "x"]);
        assert_eq!(texts("-- a; b\nselect 1 /* ; */;\n;; \n"), ["select 1 /* ; */;"]);
        assert_eq!(texts(" \n-- only\n/* space */"), [""; 0]);
        assert_eq!(texts(""), [""; 0]);
        assert_eq!(texts("select 'ä;';é;"), ["select 'ä;';", "é;"]);
    }

    #[test]
    fn a_trigger_ends_after_its_end() {
        let trigger = "CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN\n DELETE FROM b; -- END;\n \
                       UPDATE c SET end = 'END;'; END;";
        assert_eq!(texts(&format!("{trigger} select 1;")), [trigger, "select 1;"]);
        assert_eq!(texts("explain create trigger t begin x; end; y;").len(), 2);
        assert_eq!(texts("create table t(trigger); end;").len(), 2);
        assert_eq!(end("create trigger t begin x;"), End::Missing(true));
    }

    #[test]
    fn a_text_without_an_end_is_recognised() {
        for open in ["select 1", "select '", "/* x", "select \";", "create trigger t begin x; "] {
            assert_eq!(end(open), End::Missing(true), "{open}");
        }
        assert_eq!(end(" -- x\n"), End::Missing(false));
        assert_eq!(end("x ; y"), End::At(3));
    }

    #[test]
    fn lines_are_those_of_the_first_words() {
        let lines: Vec<usize> = statements("-- x\n\nselect\n1;select 2;\n\n/*\n*/ select 3")
            .iter()
            .map(|it| it.line)
            .collect();
        assert_eq!(lines, [3, 4, 7]);
    }

    #[test]
    fn first_words_tell_reading_and_transactions() {
        for reads in [
            "select 1",
            " /* x */ VALUES(1)",
            "explain delete from t",
            "with a as (select 'insert') select 1",
        ] {
            assert!(only_reads(reads), "{reads}");
        }
        for writes in [
            "insert into t values(1)",
            "with a as (select 1) INSERT INTO t SELECT * FROM a",
            "pragma user_version",
            "",
            "(select 1)",
        ] {
            assert!(!only_reads(writes), "{writes}");
        }
        assert_eq!(control("begin immediate;"), Control::Begin);
        assert_eq!(control("-- x\nEND transaction"), Control::Commit);
        assert_eq!(control("ROLLBACK"), Control::Rollback);
        assert_eq!(control("rollback to s"), Control::None);
        assert_eq!(control("'begin'"), Control::None);
    }

    #[test]
    fn named_parameters_become_numbers() {
        let (text, names) = numbered("select :id, ':id', :id + @n, ?1 -- :x\n");
        assert_eq!(text, "select ?1, ':id', ?1 + ?2, ?1 -- :x\n");
        assert_eq!(names, ["id", "n"]);
    }
}
