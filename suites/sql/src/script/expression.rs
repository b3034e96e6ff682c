//! Expressions of pgbench's meta command `\set`.
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
//! Source: the section "Built-in Operators" and "Built-In Functions" of pgbench's manual.

use std::fmt;

/// A value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
    /// Not in pgbench: a text in quotes, for parameters of SQL.
    Text(String),
}

/// The reason why an expression has no value, or is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExpressionError(pub String);

type Result<T> = std::result::Result<T, ExpressionError>;

fn fail<T>(reason: impl fmt::Display) -> Result<T> {
    Err(ExpressionError(reason.to_string()))
}

/// A source of random numbers.
pub trait Random {
    /// Returns a number of 64 random bits.
    fn bits(&mut self) -> u64;

    /// Returns a number from 0 to 1, without 1.
    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number from 0 to `n` − 1, each as likely as another.
    fn below(&mut self, n: u64) -> u64 {
        // Numbers past the largest multiple of n would make the first ones more likely.
        let rest = u64::MAX - u64::MAX % n;
        loop {
            let bits = self.bits();
            if bits < rest {
                return bits % n;
            }
        }
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Constant(Number),
    Variable(String),
    Call(Function, Vec<Expression>),
    /// Conditions with their results, and the result if none is true.
    Case(Vec<(Expression, Expression)>, Option<Box<Expression>>),
}

macro_rules! functions {
    ($($function:ident $name:literal $least:literal $most:literal)*) => {
        /// An operator or a function.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Function { $($function),* }

        impl Function {
            /// The functions with their names, and the smallest and largest number of their arguments.
            const ALL: &'static [(Self, &'static str, usize, usize)] =
                &[$((Self::$function, $name, $least, $most)),*];
        }
    };
}

functions! {
    Or "OR" 2 2
    And "AND" 2 2
    Not "NOT" 1 1
    IsNull "IS NULL" 1 1
    IsTrue "IS TRUE" 1 1
    IsFalse "IS FALSE" 1 1
    Equal "=" 2 2
    NotEqual "<>" 2 2
    Less "<" 2 2
    LessOrEqual "<=" 2 2
    BitOr "|" 2 2
    BitXor "#" 2 2
    BitAnd "&" 2 2
    BitNot "~" 1 1
    Left "<<" 2 2
    Right ">>" 2 2
    Add "+" 2 2
    Subtract "-" 2 2
    Multiply "*" 2 2
    Divide "/" 2 2
    Modulo "%" 2 2
    Negate "- " 1 1
    Abs "abs" 1 1
    Double "double" 1 1
    Exp "exp" 1 1
    Greatest "greatest" 1 16
    Hash "hash" 1 2
    HashFnv1a "hash_fnv1a" 1 2
    HashMurmur2 "hash_murmur2" 1 2
    Int "int" 1 1
    Least "least" 1 16
    Ln "ln" 1 1
    Mod "mod" 2 2
    Permute "permute" 2 3
    Pi "pi" 0 0
    Pow "pow" 2 2
    Power "power" 2 2
    Random "random" 2 2
    RandomExponential "random_exponential" 3 3
    RandomGaussian "random_gaussian" 3 3
    RandomZipfian "random_zipfian" 3 3
    Sqrt "sqrt" 1 1
}

impl Number {
    fn integer(&self) -> Result<i64> {
        match self {
            Self::Integer(number) => Ok(*number),
            Self::Double(number) if number.round().abs() < 9.2e18 => Ok(number.round() as i64),
            other => fail(format!("{other} is no integer")),
        }
    }

    fn double(&self) -> Result<f64> {
        match self {
            Self::Integer(number) => Ok(*number as f64),
            Self::Double(number) => Ok(*number),
            other => fail(format!("{other} is no number")),
        }
    }

    fn boolean(&self) -> Result<bool> {
        match self {
            Self::Boolean(value) => Ok(*value),
            other => fail(format!("{other} is no condition")),
        }
    }

    /// Returns `true` if `\if` and `WHEN` take the branch.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Boolean(value) => *value,
            Self::Integer(number) => *number != 0,
            Self::Double(number) => *number != 0.0,
            Self::Null | Self::Text(_) => false,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Double(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Expression {
    /// Returns the value; `variable` returns those of variables.
    ///
    /// # Errors
    ///
    /// If a variable has no value, or an argument is not one that a function takes.
    pub fn value(
        &self,
        variable: &impl Fn(&str) -> Option<Number>,
        random: &mut dyn Random,
    ) -> Result<Number> {
        match self {
            Self::Constant(number) => Ok(number.clone()),
            Self::Variable(name) => variable(name)
                .ok_or_else(|| ExpressionError(format!("the variable :{name} has no value"))),
            Self::Case(branches, otherwise) => {
                for (condition, result) in branches {
                    if condition.value(variable, random)?.is_true() {
                        return result.value(variable, random);
                    }
                }
                otherwise.as_ref().map_or(Ok(Number::Null), |it| it.value(variable, random))
            }
            Self::Call(Function::And, both) => match both[0].value(variable, random)? {
                Number::Boolean(false) => Ok(Number::Boolean(false)),
                Number::Null => Ok(match both[1].value(variable, random)? {
                    Number::Boolean(false) => Number::Boolean(false),
                    _ => Number::Null,
                }),
                first => {
                    first.boolean()?;
                    both[1].value(variable, random)
                }
            },
            Self::Call(Function::Or, both) => match both[0].value(variable, random)? {
                Number::Boolean(true) => Ok(Number::Boolean(true)),
                Number::Null => Ok(match both[1].value(variable, random)? {
                    Number::Boolean(true) => Number::Boolean(true),
                    _ => Number::Null,
                }),
                first => {
                    first.boolean()?;
                    both[1].value(variable, random)
                }
            },
            Self::Call(function, arguments) => {
                let values = arguments.iter().map(|argument| argument.value(variable, random));
                function.apply(&values.collect::<Result<Vec<_>>>()?, random)
            }
        }
    }
}

impl Function {
    fn named(name: &str) -> Option<(Self, usize, usize)> {
        let found = Self::ALL.iter().find(|(_, known, ..)| {
            known.starts_with(|letter: char| letter.is_ascii_lowercase())
                && known.eq_ignore_ascii_case(name)
        });
        found.map(|(function, _, least, most)| (*function, *least, *most))
    }

    fn apply(self, values: &[Number], random: &mut dyn Random) -> Result<Number> {
        use Number::{Boolean, Double, Integer, Null};
        match (self, values) {
            (Self::IsNull, [value]) => return Ok(Boolean(*value == Null)),
            (Self::IsTrue, [value]) => return Ok(Boolean(*value == Boolean(true))),
            (Self::IsFalse, [value]) => return Ok(Boolean(*value == Boolean(false))),
            _ => {}
        }
        if values.contains(&Null) {
            return Ok(Null);
        }
        let doubles = values.iter().any(|value| matches!(value, Double(_)));
        let integer = |place: usize| values[place].integer();
        let double = |place: usize| values[place].double();
        let overflow = || ExpressionError("an integer is too large".to_owned());
        let arithmetic = |of_integers: fn(i64, i64) -> Option<i64>,
                          of_doubles: fn(f64, f64) -> f64| {
            if doubles {
                return Ok(Double(of_doubles(double(0)?, double(1)?)));
            }
            of_integers(integer(0)?, integer(1)?).map(Integer).ok_or_else(overflow)
        };
        let compared = || -> Result<std::cmp::Ordering> {
            match (&values[0], &values[1]) {
                (Number::Text(one), Number::Text(other)) => Ok(one.cmp(other)),
                (Boolean(one), Boolean(other)) => Ok(one.cmp(other)),
                (Integer(one), Integer(other)) => Ok(one.cmp(other)),
                _ => double(0)?
                    .partial_cmp(&double(1)?)
                    .ok_or_else(|| ExpressionError("NaN has no order".to_owned())),
            }
        };
        Ok(match self {
            Self::And | Self::Or | Self::IsNull | Self::IsTrue | Self::IsFalse => Null,
            Self::Not => Boolean(!values[0].boolean()?),
            Self::Equal => Boolean(compared()?.is_eq()),
            Self::NotEqual => Boolean(compared()?.is_ne()),
            Self::Less => Boolean(compared()?.is_lt()),
            Self::LessOrEqual => Boolean(compared()?.is_le()),
            Self::BitOr => Integer(integer(0)? | integer(1)?),
            Self::BitXor => Integer(integer(0)? ^ integer(1)?),
            Self::BitAnd => Integer(integer(0)? & integer(1)?),
            Self::BitNot => Integer(!integer(0)?),
            Self::Left => Integer(integer(0)?.wrapping_shl(integer(1)? as u32)),
            Self::Right => Integer(integer(0)?.wrapping_shr(integer(1)? as u32)),
            Self::Add => arithmetic(i64::checked_add, |one, other| one + other)?,
            Self::Subtract => arithmetic(i64::checked_sub, |one, other| one - other)?,
            Self::Multiply => arithmetic(i64::checked_mul, |one, other| one * other)?,
            Self::Divide if !doubles && integer(1)? == 0 => return fail("division by zero"),
            Self::Divide => arithmetic(i64::checked_div, |one, other| one / other)?,
            Self::Modulo | Self::Mod if integer(1)? == 0 => return fail("division by zero"),
            Self::Modulo | Self::Mod => Integer(integer(0)?.wrapping_rem(integer(1)?)),
            Self::Negate if doubles => Double(-double(0)?),
            Self::Negate => Integer(integer(0)?.checked_neg().ok_or_else(overflow)?),
            Self::Abs if doubles => Double(double(0)?.abs()),
            Self::Abs => Integer(integer(0)?.checked_abs().ok_or_else(overflow)?),
            Self::Double => Double(double(0)?),
            Self::Int => Integer(integer(0)?),
            Self::Exp => Double(double(0)?.exp()),
            Self::Ln => Double(double(0)?.ln()),
            Self::Pi => Double(std::f64::consts::PI),
            Self::Pow | Self::Power => Double(double(0)?.powf(double(1)?)),
            Self::Sqrt => Double(double(0)?.sqrt()),
            Self::Greatest | Self::Least => {
                let better = |one: f64, other: f64| match self {
                    Self::Greatest => one.max(other),
                    _ => one.min(other),
                };
                if doubles {
                    let all = values.iter().map(Number::double).collect::<Result<Vec<_>>>()?;
                    Double(all.into_iter().fold(f64::NAN, better))
                } else {
                    let all = values.iter().map(Number::integer).collect::<Result<Vec<_>>>()?;
                    let found = if self == Self::Greatest {
                        all.into_iter().max()
                    } else {
                        all.into_iter().min()
                    };
                    found.map_or(Null, Integer)
                }
            }
            Self::Hash | Self::HashMurmur2 => Integer(murmur2(integer(0)?, seed(values)?)),
            Self::HashFnv1a => Integer(fnv1a(integer(0)?, seed(values)?)),
            Self::Permute => {
                let size = integer(1)?;
                if size <= 0 {
                    return fail("the size of a permutation is larger than 0");
                }
                let seed = if values.len() > 2 { integer(2)? } else { DEFAULT_SEED };
                Integer(
                    permuted(integer(0)?.rem_euclid(size) as u64, size as u64, seed as u64) as i64
                )
            }
            Self::Random => {
                let (least, most) = range(values)?;
                Integer(least.wrapping_add(up_to(random, most.wrapping_sub(least) as u64) as i64))
            }
            Self::RandomExponential => {
                let ((least, most), parameter) = (range(values)?, double(2)?);
                if parameter <= 0.0 {
                    return fail("the parameter of random_exponential is larger than 0");
                }
                let cut = (-parameter).exp();
                let uniform = 1.0 - random.unit();
                let drawn = -(cut + (1.0 - cut) * uniform).ln() / parameter;
                Integer(least + ((most - least + 1) as f64 * drawn) as i64)
            }
            Self::RandomGaussian => {
                let ((least, most), parameter) = (range(values)?, double(2)?);
                if parameter < 2.0 {
                    return fail("the parameter of random_gaussian is at least 2");
                }
                let drawn = loop {
                    let (one, other) = (1.0 - random.unit(), 1.0 - random.unit());
                    let drawn =
                        (-2.0 * one.ln()).sqrt() * (2.0 * std::f64::consts::PI * other).sin();
                    if (-parameter..parameter).contains(&drawn) {
                        break drawn;
                    }
                };
                let unit = (drawn + parameter) / (parameter * 2.0);
                Integer(least + ((most - least + 1) as f64 * unit) as i64)
            }
            Self::RandomZipfian => {
                let ((least, most), parameter) = (range(values)?, double(2)?);
                if !(1.001..=1000.0).contains(&parameter) {
                    return fail("the parameter of random_zipfian is from 1.001 to 1000");
                }
                Integer(least - 1 + zipfian(random, most - least + 1, parameter))
            }
        })
    }
}

/// The range of a random number.
fn range(values: &[Number]) -> Result<(i64, i64)> {
    let (least, most) = (values[0].integer()?, values[1].integer()?);
    match most.checked_sub(least) {
        Some(width) if (0..i64::MAX).contains(&width) => Ok((least, most)),
        _ => fail(format!("there is no number from {least} to {most}, or there are too many")),
    }
}

fn up_to(random: &mut dyn Random, most: u64) -> u64 {
    random.below(most + 1)
}

/// Draws from 1 to `n`, `k` with a probability proportional to 1 / kˢ: the method by rejection in
/// "Non-Uniform Random Variate Generation", Luc Devroye, page 551.
fn zipfian(random: &mut dyn Random, n: i64, s: f64) -> i64 {
    if n <= 1 {
        return 1;
    }
    let b = 2.0_f64.powf(s - 1.0);
    loop {
        let (u, v) = (1.0 - random.unit(), random.unit());
        let x = u.powf(-1.0 / (s - 1.0)).floor();
        let t = (1.0 + 1.0 / x).powf(s - 1.0);
        if x <= n as f64 && v * x * (t - 1.0) / (b - 1.0) <= t / b {
            return x as i64;
        }
    }
}

const DEFAULT_SEED: i64 = 0;

fn seed(values: &[Number]) -> Result<u64> {
    values.get(1).map_or(Ok(DEFAULT_SEED), Number::integer).map(|seed| seed as u64)
}

/// FNV-1a of the eight bytes of a number, beginning with the basis and the seed.
fn fnv1a(value: i64, seed: u64) -> i64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed;
    for byte in (value as u64).to_le_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash as i64
}

/// MurmurHash2, 64 bits, of the eight bytes of a number.
fn murmur2(value: i64, seed: u64) -> i64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mut hash = seed ^ 8_u64.wrapping_mul(M);
    let mut k = (value as u64).wrapping_mul(M);
    k = (k ^ k >> 47).wrapping_mul(M);
    hash = (hash ^ k).wrapping_mul(M);
    hash = (hash ^ hash >> 47).wrapping_mul(M);
    (hash ^ hash >> 47) as i64
}

/// Returns the place of a number in a permutation of 0 to `size` − 1: a Feistel network over the next
/// larger power of four, walked until the number is in the range. Not pgbench's permutation.
fn permuted(value: u64, size: u64, seed: u64) -> u64 {
    let half = (64 - (size - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1_u64 << half) - 1;
    let mut at = value;
    loop {
        let (mut left, mut right) = (at >> half, at & mask);
        for round in 0..6 {
            let mixed = murmur2(right as i64, seed.wrapping_add(round)) as u64 & mask;
            (left, right) = (right, left ^ mixed);
        }
        at = left << half | right;
        if at < size {
            return at;
        }
    }
}

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
