//! The libraries that Kubernetes adds to CEL: quantities, addresses, URLs, formats, versions.

mod format;
mod network;
mod quantity;
mod semver;
mod url;

use super::eval::{NO_OVERLOAD, Result, Scope, told};
use super::value::Val;

use network::{Cidr, Ip};
use quantity::Quantity;
use semver::Semver;
use url::Url;

/// A value of a library.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Library {
    Quantity(Quantity),
    Ip(Ip),
    Cidr(Cidr),
    Url(Url),
    Format(&'static str),
    Semver(Semver),
}

impl Library {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Semver(_) => "kubernetes.Semver",
        }
    }

    /// The text that `string` makes of it; None if it makes none.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Ip(ip) => Some(ip.0.to_string()),
            Self::Cidr(cidr) => Some(cidr.text()),
            Self::Quantity(_) | Self::Url(_) | Self::Format(_) | Self::Semver(_) => None,
        }
    }
}

/// A function without a receiver.
pub(crate) fn function<'a>(scope: &Scope<'a, '_>, name: &str, args: &[Val<'a>]) -> Result<'a> {
    if let (Some(format), []) = (name.strip_prefix("format.").and_then(format::find), args) {
        return Ok(Val::library(Library::Format(format)));
    }
    if let ("sign", [Val::Library(it)]) = (name, args) {
        return method(scope, it, name, &[]);
    }
    let [Val::Text(text), rest @ ..] = args else {
        return told(NO_OVERLOAD);
    };
    scope.spend(text.len() / 10 + 1)?;
    let made = |value: Option<Library>, why: String| match value {
        Some(value) => Ok(Val::library(value)),
        None => told(why),
    };
    let no_ip = || {
        format!(
            "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): \
             unable to parse IP"
        )
    };
    let is = |value: bool| Ok(Val::Bool(value));
    let is_loose = matches!(rest, [Val::Bool(true)]);
    match name {
        "quantity" => made(
            Quantity::read(text).map(Library::Quantity),
            "quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                .to_owned(),
        ),
        "isQuantity" => is(Quantity::read(text).is_some()),
        "ip" => made(Ip::read(text).map(Library::Ip), no_ip()),
        "isIP" => is(Ip::read(text).is_some()),
        "ip.isCanonical" => match Ip::read(text) {
            Some(ip) => is(ip.0.to_string() == **text),
            None => told(no_ip()),
        },
        "cidr" => made(
            Cidr::read(text).map(Library::Cidr),
            format!(
                "network address parse error during conversion from string: network address parse \
                 error during conversion from string: netip.ParsePrefix({text:?}): no '/'"
            ),
        ),
        "isCIDR" => is(Cidr::read(text).is_some()),
        "url" => made(
            Url::read(text).map(Library::Url),
            format!(
                "URL parse error during conversion from string: parse {text:?}: invalid URI for \
                 request"
            ),
        ),
        "isURL" => is(Url::read(text).is_some()),
        "semver" => made(
            Semver::read(text, is_loose).map(Library::Semver),
            "No Major.Minor.Patch elements found".to_owned(),
        ),
        "isSemver" => is(Semver::read(text, is_loose).is_some()),
        "format.named" => {
            let format = format::find(text).map(|it| Val::library(Library::Format(it)));
            Ok(format.map_or(Val::Optional(None), Val::some))
        }
        _ => told(NO_OVERLOAD),
    }
}

/// A function with a value of a library as receiver.
pub(crate) fn method<'a>(
    scope: &Scope<'a, '_>,
    on: &Library,
    name: &str,
    args: &[Val<'a>],
) -> Result<'a> {
    let found = match on {
        Library::Quantity(quantity) => quantity.call(name, args)?,
        Library::Ip(ip) => ip.call(name, args),
        Library::Cidr(cidr) => cidr.call(name, args)?,
        Library::Url(url) => url.call(name, args),
        Library::Semver(version) => version.call(name, args),
        Library::Format(format) => match (name, args) {
            ("validate", [Val::Text(text)]) => {
                scope.spend((text.len() / 10 + 1).saturating_mul(32))?;
                Some(format::validate(format, text))
            }
            _ => None,
        },
    };
    found.map_or_else(|| told(NO_OVERLOAD), Ok)
}
