//! `candid_parser` is used here to read texts, and only its binding generator needs `handlebars`.
//! This has the same interface, and renders nothing.

use std::marker::PhantomData;

/// A renderer without templates.
#[derive(Default)]
pub struct Handlebars<'a>(PhantomData<&'a ()>);

impl Handlebars<'_> {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn register_escape_fn(&mut self, _: impl Fn(&str) -> String) {}

    pub fn set_strict_mode(&mut self, _: bool) {}

    pub fn register_helper(&mut self, _: &str, _: Box<Call>) {}

    pub fn render_template<T>(&self, _: &str, _: &T) -> Result<String, RenderError> {
        Err(RenderError)
    }
}

/// A function that templates call.
pub type Call =
    dyn Fn(&Helper, &Handlebars<'_>, &Context, &mut RenderContext, &mut dyn Output) -> HelperResult;

/// The call of a function. It has no parameters.
pub struct Helper(());

pub struct Parameter(Value);

pub enum Value {
    String(String),
    Array(Vec<Value>),
}

impl Helper {
    pub fn param(&self, _: usize) -> Option<&Parameter> {
        None
    }
}

impl Parameter {
    pub fn value(&self) -> &Value {
        &self.0
    }
}

impl Value {
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            Self::Array(_) => None,
        }
    }

    pub fn as_array(&self) -> Option<&Vec<Value>> {
        match self {
            Self::Array(values) => Some(values),
            Self::String(_) => None,
        }
    }
}

pub struct Context(());

pub struct RenderContext(());

pub trait Output {
    fn write(&mut self, text: &str) -> Result<(), std::io::Error>;
}

pub type HelperResult = Result<(), RenderError>;

/// The only result of rendering.
#[derive(Debug)]
pub struct RenderError;

impl From<std::io::Error> for RenderError {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

pub fn no_escape(text: &str) -> String {
    text.to_owned()
}
