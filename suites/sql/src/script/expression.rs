//! Values, functions and evaluation of the expressions of pgbench's meta command `\set`.
//!
//! Source: the section "Built-In Functions" of pgbench's manual.

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

pub(super) type Result<T> = std::result::Result<T, ExpressionError>;

pub(super) fn fail<T>(reason: impl fmt::Display) -> Result<T> {
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
    pub(super) fn named(name: &str) -> Option<(Self, usize, usize)> {
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
            Self::HashFnv1a => {
                let value = integer(0)?.to_le_bytes();
                Integer(fnv1a(BASIS ^ seed(values)?, &value) as i64)
            }
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

/// The hash of nothing by [`fnv1a`].
pub(super) const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, 64 bits, continued.
pub(super) fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(hash, step)
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
pub(super) fn permuted(value: u64, size: u64, seed: u64) -> u64 {
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
