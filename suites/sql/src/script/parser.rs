//! The parser of expressions of pgbench's meta command `\set`.
//!
//! ```text
//!   lowest   OR
//!            AND
//!            NOT
//!            IS [NOT] NULL, IS [NOT] TRUE, IS [NOT] FALSE, ISNULL, NOTNULL
//!            = <> != < <= > >=
//!            | # &  << >>  ~
//!            + -
//!            * / %
//!   highest  unary - and +
//! ```
//!
//! Source: the section "Built-in Operators" of pgbench's manual.

use super::expression::{Expression, ExpressionError, Function, Number, Result, fail};

/// Parses an expression.
///
/// # Errors
///
/// If it is none; the reason names the place.
pub fn parse(text: &str) -> Result<Expression> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let expression = parser.level(0)?;
    parser.space();
    match parser.rest() {
        "" => Ok(expression),
        rest => fail(format!("expected an operator before {:?}", start(rest))),
    }
}

/// The beginning of a text, for messages.
fn start(text: &str) -> &str {
    let end = text.char_indices().nth(20).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

/// Operators with two sides, by their level; a longer one is before its own beginning.
const BINARY: &[&[(&str, Function, bool)]] = &[
    &[("OR", Function::Or, false)],
    &[("AND", Function::And, false)],
    // NOT
    &[],
    // IS
    &[],
    &[
        ("<=", Function::LessOrEqual, false),
        (">=", Function::LessOrEqual, true),
        ("<>", Function::NotEqual, false),
        ("!=", Function::NotEqual, false),
        ("=", Function::Equal, false),
        ("<", Function::Less, false),
        (">", Function::Less, true),
    ],
    &[
        ("<<", Function::Left, false),
        (">>", Function::Right, false),
        ("|", Function::BitOr, false),
        ("#", Function::BitXor, false),
        ("&", Function::BitAnd, false),
    ],
    &[("+", Function::Add, false), ("-", Function::Subtract, false)],
    &[
        ("*", Function::Multiply, false),
        ("/", Function::Divide, false),
        ("%", Function::Modulo, false),
    ],
];

/// Nesting beyond which the stack could end.
const MAX_DEPTH: usize = 200;

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Takes a sign or a word.
    fn take(&mut self, expected: &str) -> bool {
        self.space();
        let rest = self.rest();
        let is_word = expected.starts_with(|letter: char| letter.is_ascii_alphabetic());
        let found =
            rest.get(..expected.len()).is_some_and(|start| start.eq_ignore_ascii_case(expected));
        let ends = !rest[expected.len().min(rest.len())..]
            .starts_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        let found = found && (!is_word || ends);
        self.at += if found { expected.len() } else { 0 };
        found
    }

    fn expect(&mut self, expected: &str) -> Result<()> {
        match self.take(expected) {
            true => Ok(()),
            false => fail(format!("expected {expected} before {:?}", start(self.rest()))),
        }
    }

    fn level(&mut self, level: usize) -> Result<Expression> {
        match level {
            2 if self.take("NOT") => {
                self.deeper()?;
                let inner = self.level(2)?;
                self.depth -= 1;
                return Ok(Expression::Call(Function::Not, vec![inner]));
            }
            3 => return self.is(),
            8 => return self.unary(),
            _ => {}
        }
        let mut left = self.level(level + 1)?;
        // `<` is no beginning of `<<`, and `|` none of `||`.
        'more: loop {
            for (sign, function, swapped) in BINARY[level] {
                self.space();
                let longer =
                    level == 4 && (self.rest().starts_with("<<") || self.rest().starts_with(">>"));
                if !longer && self.take(sign) {
                    let right = self.level(level + 1)?;
                    let both = if *swapped { vec![right, left] } else { vec![left, right] };
                    left = Expression::Call(*function, both);
                    continue 'more;
                }
            }
            return Ok(left);
        }
    }

    fn is(&mut self) -> Result<Expression> {
        let mut left = self.level(4)?;
        loop {
            let negated = |is: bool, call| match is {
                true => Expression::Call(Function::Not, vec![call]),
                false => call,
            };
            if self.take("ISNULL") {
                left = Expression::Call(Function::IsNull, vec![left]);
            } else if self.take("NOTNULL") {
                left = negated(true, Expression::Call(Function::IsNull, vec![left]));
            } else if self.take("IS") {
                let not = self.take("NOT");
                let function = match () {
                    () if self.take("NULL") => Function::IsNull,
                    () if self.take("TRUE") => Function::IsTrue,
                    () if self.take("FALSE") => Function::IsFalse,
                    () => return fail("expected NULL, TRUE or FALSE after IS"),
                };
                left = negated(not, Expression::Call(function, vec![left]));
            } else {
                return Ok(left);
            }
        }
    }

    fn deeper(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { fail("the expression is nested too deeply") } else { Ok(()) }
    }

    fn unary(&mut self) -> Result<Expression> {
        self.deeper()?;
        let found = self.operand();
        self.depth -= 1;
        found
    }

    fn operand(&mut self) -> Result<Expression> {
        if self.take("-") {
            return Ok(match self.unary()? {
                Expression::Constant(Number::Integer(number)) => {
                    Expression::Constant(Number::Integer(-number))
                }
                inner => Expression::Call(Function::Negate, vec![inner]),
            });
        }
        if self.take("~") {
            return Ok(Expression::Call(Function::BitNot, vec![self.unary()?]));
        }
        if self.take("+") {
            return self.unary();
        }
        if self.take("(") {
            let inner = self.level(0)?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.take("CASE") {
            let mut branches = Vec::new();
            while self.take("WHEN") {
                let condition = self.level(0)?;
                self.expect("THEN")?;
                branches.push((condition, self.level(0)?));
            }
            let otherwise = if self.take("ELSE") { Some(Box::new(self.level(0)?)) } else { None };
            self.expect("END")?;
            return Ok(Expression::Case(branches, otherwise));
        }
        for (word, value) in [
            ("NULL", Number::Null),
            ("TRUE", Number::Boolean(true)),
            ("FALSE", Number::Boolean(false)),
        ] {
            if self.take(word) {
                return Ok(Expression::Constant(value));
            }
        }
        let rest = self.rest();
        let word = |from: usize| {
            let length = rest[from..]
                .find(|letter: char| !letter.is_alphanumeric() && letter != '_')
                .unwrap_or(rest.len() - from);
            &rest[from..from + length]
        };
        match rest.chars().next() {
            Some(':') if !word(1).is_empty() => {
                self.at += 1 + word(1).len();
                Ok(Expression::Variable(word(1).to_owned()))
            }
            Some('\'') => self.quoted(),
            Some(digit) if digit.is_ascii_digit() || digit == '.' => self.number(),
            Some(letter) if letter.is_alphabetic() => {
                let name = word(0);
                self.at += name.len();
                self.call(name)
            }
            _ => fail(format!("expected a value before {:?}", start(rest))),
        }
    }

    fn quoted(&mut self) -> Result<Expression> {
        let rest = self.rest();
        let mut text = String::new();
        let mut letters = rest.char_indices().skip(1).peekable();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\'' if letters.next_if(|(_, next)| *next == '\'').is_some() => text.push('\''),
                '\'' => {
                    self.at += at + 1;
                    return Ok(Expression::Constant(Number::Text(text)));
                }
                letter => text.push(letter),
            }
        }
        fail("a text has no end")
    }

    fn number(&mut self) -> Result<Expression> {
        let rest = self.rest();
        let digits = |from: usize| {
            rest[from..]
                .find(|letter: char| !letter.is_ascii_digit())
                .map_or(rest.len(), |at| from + at)
        };
        let mut end = digits(0);
        let mut is_double = false;
        if rest[end..].starts_with('.') {
            end = digits(end + 1);
            is_double = true;
        }
        if rest[end..].starts_with(['e', 'E']) {
            let signed = end + 1 + usize::from(rest[end + 1..].starts_with(['-', '+']));
            end = digits(signed);
            is_double = true;
        }
        let text = &rest[..end];
        self.at += end;
        let invalid = || ExpressionError(format!("{text} is no number"));
        Ok(Expression::Constant(match is_double {
            true => Number::Double(text.parse().map_err(|_| invalid())?),
            false => Number::Integer(text.parse().map_err(|_| invalid())?),
        }))
    }

    fn call(&mut self, name: &str) -> Result<Expression> {
        let Some((function, least, most)) = Function::named(name) else {
            return fail(format!("there is no function {name}"));
        };
        self.expect("(")?;
        let mut arguments = Vec::new();
        if !self.take(")") {
            loop {
                arguments.push(self.level(0)?);
                if !self.take(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        match (least..=most).contains(&arguments.len()) {
            true => Ok(Expression::Call(function, arguments)),
            false => {
                fail(format!("{name} takes {least} to {most} arguments, not {}", arguments.len()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::expression::{Random, permuted};

    struct Counter(u64);

    impl Random for Counter {
        fn bits(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        }
    }

    fn value(text: &str) -> Result<Number> {
        let variable = |name: &str| (name == "n").then_some(Number::Integer(7));
        parse(text)?.value(&variable, &mut Counter(1))
    }

    #[test]
    fn operators_have_the_order_of_pgbench() {
        for (text, expected) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("10 - 4 - 3", 3),
            ("7 / 2", 3),
            ("-7 / 2", -3),
            ("7 % 3", 1),
            ("2 + 1 << 3", 24),
            ("5 & 3 | 8", 9),
            ("5 # 1", 4),
            ("~5", -6),
            ("- -3", 3),
            (":n * 2", 14),
            ("abs(-4)", 4),
            ("greatest(3, 9, 4)", 9),
            ("least(3, 9, 4)", 3),
            ("int(2.6)", 3),
            ("mod(7, 4)", 3),
            ("CASE WHEN :n > 5 THEN 1 ELSE 2 END", 1),
            ("case when false then 1 when 1 then 5 end", 5),
        ] {
            assert_eq!(value(text), Ok(Number::Integer(expected)), "{text}");
        }
        for (text, expected) in [
            ("1 < 2 AND NOT 2 < 1", true),
            ("1 = 1 OR 1 / 0 = 1", true),
            ("1 <> 1", false),
            ("2 >= 2", true),
            ("NULL IS NULL", true),
            ("1 IS NOT NULL", true),
            ("NULL ISNULL", true),
            ("true and false or true", true),
            ("not true is false", true),
            ("1.5 > 1", true),
            ("'a' < 'b'", true),
            ("1 << 2 = 4", true),
        ] {
            assert_eq!(value(text), Ok(Number::Boolean(expected)), "{text}");
        }
        assert_eq!(value("1 + NULL"), Ok(Number::Null));
        assert_eq!(value("false and NULL"), Ok(Number::Boolean(false)));
        assert_eq!(value("7 / 2.0"), Ok(Number::Double(3.5)));
        assert_eq!(value("1e2 + .5"), Ok(Number::Double(100.5)));
        assert_eq!(value("sqrt(16)"), Ok(Number::Double(4.0)));
        assert_eq!(value("'it''s'"), Ok(Number::Text("it's".to_owned())));
    }

    #[test]
    fn what_is_no_expression_is_refused_with_the_place() {
        for (text, part) in [
            ("", "expected a value"),
            ("1 +", "expected a value"),
            ("1 2", "expected an operator before \"2\""),
            ("(1", "expected )"),
            ("nosuch(1)", "no function nosuch"),
            ("random(1)", "takes 2 to 2"),
            (":x", "no value"),
            ("1 / 0", "division by zero"),
            ("9223372036854775807 + 1", "too large"),
            ("99999999999999999999", "no number"),
            ("random(2, 1)", "no number from 2 to 1"),
            ("random_zipfian(1, 5, 1)", "1.001"),
            ("random_gaussian(1, 5, 1)", "at least 2"),
            ("'x", "no end"),
            ("1 and true", "no condition"),
        ] {
            let error = value(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(value(&"(".repeat(10_000)).is_err());
        assert!(value(&"-".repeat(10_000)).is_err());
        assert!(value(&"not ".repeat(10_000)).is_err());
    }

    /// Draws of 1 to 10, counted.
    fn drawn(text: &str) -> Vec<u64> {
        let expression = parse(text).unwrap();
        let mut random = Counter(7);
        let mut counts = vec![0; 10];
        for _ in 0..100_000 {
            let Number::Integer(number) = expression.value(&|_| None, &mut random).unwrap() else {
                panic!()
            };
            counts[usize::try_from(number - 1).unwrap()] += 1;
        }
        counts
    }

    /// Each within five standard deviations of its expected number.
    fn near(counts: &[u64], weights: impl Fn(f64) -> f64) {
        let weights: Vec<f64> = (1..=counts.len()).map(|k| weights(k as f64)).collect();
        let all: f64 = weights.iter().sum();
        let draws = counts.iter().sum::<u64>() as f64;
        for (count, weight) in counts.iter().zip(weights) {
            let expected = draws * weight / all;
            assert!(
                (*count as f64 - expected).abs() <= 5.0 * expected.sqrt().max(1.0),
                "{counts:?}: {count} for {expected}"
            );
        }
    }

    #[test]
    fn random_numbers_have_their_distributions() {
        near(&drawn("random(1, 10)"), |_| 1.0);
        near(&drawn("random_zipfian(1, 10, 1.5)"), |k| k.powf(-1.5));
        near(&drawn("random_zipfian(1, 10, 3)"), |k| k.powi(-3));
        near(&drawn("random_exponential(1, 10, 4)"), |k| {
            (-4.0 * (k - 1.0) / 10.0).exp() - (-4.0 * k / 10.0).exp()
        });
        let gaussian = drawn("random_gaussian(1, 10, 3)");
        near(&(0..5).map(|k| gaussian[k] + gaussian[9 - k]).collect::<Vec<_>>(), |k| {
            // Areas under the bell of tenths of six standard deviations, by Simpson's rule.
            let density = |x: f64| (-x * x / 2.0).exp();
            let (from, step) = (-3.0 + 0.6 * (k - 1.0), 0.6);
            (0..60).map(|part| density(from + step * (f64::from(part) + 0.5) / 60.0)).sum()
        });
    }

    #[test]
    fn a_permutation_has_each_number_once() {
        for size in [1_u64, 2, 7, 64, 1000] {
            let mut places: Vec<u64> = (0..size).map(|value| permuted(value, size, 42)).collect();
            places.sort_unstable();
            assert!(places.iter().copied().eq(0..size), "{size}");
        }
        assert_ne!(value("permute(3, 1000, 1)"), value("permute(3, 1000, 2)"));
    }
}
