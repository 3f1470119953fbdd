//! The functions and operators of upstream's environment for rules (1.37), as one table of facts.

use std::rc::Rc;

use super::ty::{Bound, Ty};

/// Lines of `name(types)->type`; with a receiver `type.name(types)->type`.
const TABLE: &str = "
!_(bool)->bool
-_(int)->int
-_(double)->double
-_(duration)->duration
_&&_(bool,bool)->bool
_||_(bool,bool)->bool
_?_:_(bool,A,A)->A
_==_(A,A)->bool
_!=_(A,A)->bool
_+_(int,int)->int
_+_(uint,uint)->uint
_+_(double,double)->double
_+_(string,string)->string
_+_(bytes,bytes)->bytes
_+_(list<A>,list<A>)->list<A>
_+_(duration,duration)->duration
_+_(timestamp,duration)->timestamp
_+_(duration,timestamp)->timestamp
_-_(int,int)->int
_-_(uint,uint)->uint
_-_(double,double)->double
_-_(duration,duration)->duration
_-_(timestamp,duration)->timestamp
_-_(timestamp,timestamp)->duration
_*_(int,int)->int
_*_(uint,uint)->uint
_*_(double,double)->double
_/_(int,int)->int
_/_(uint,uint)->uint
_/_(double,double)->double
_%_(int,int)->int
_%_(uint,uint)->uint
@in(A,list<A>)->bool
@in(A,map<A,B>)->bool
_[_](list<A>,int)->A
_[_](map<A,B>,A)->B
_[?_](list<A>,int)->optional<A>
_[?_](map<A,B>,A)->optional<B>
_[_](optional<list<A>>,int)->optional<A>
_[_](optional<map<A,B>>,A)->optional<B>
_[?_](optional<list<A>>,int)->optional<A>
_[?_](optional<map<A,B>>,A)->optional<B>
size(string)->int
size(bytes)->int
size(list<A>)->int
size(map<A,B>)->int
string.size()->int
bytes.size()->int
list<A>.size()->int
map<A,B>.size()->int
type(A)->type
dyn(A)->dyn
bool(bool)->bool
bool(string)->bool
bytes(bytes)->bytes
bytes(string)->bytes
double(double)->double
double(int)->double
double(uint)->double
double(string)->double
int(int)->int
int(uint)->int
int(double)->int
int(string)->int
int(timestamp)->int
int(duration)->int
uint(uint)->uint
uint(int)->uint
uint(double)->uint
uint(string)->uint
string(string)->string
string(bool)->string
string(int)->string
string(uint)->string
string(double)->string
string(bytes)->string
string(timestamp)->string
string(duration)->string
string(ip)->string
string(cidr)->string
duration(duration)->duration
duration(string)->duration
timestamp(timestamp)->timestamp
timestamp(string)->timestamp
timestamp(int)->timestamp
string.contains(string)->bool
string.startsWith(string)->bool
string.endsWith(string)->bool
string.matches(string)->bool
matches(string,string)->bool
string.charAt(int)->string
string.format(list<dyn>)->string
string.indexOf(string)->int
string.indexOf(string,int)->int
string.lastIndexOf(string)->int
string.lastIndexOf(string,int)->int
string.lowerAscii()->string
string.upperAscii()->string
string.replace(string,string)->string
string.replace(string,string,int)->string
string.split(string)->list<string>
string.split(string,int)->list<string>
string.substring(int)->string
string.substring(int,int)->string
string.trim()->string
strings.quote(string)->string
list<string>.join()->string
list<string>.join(string)->string
string.find(string)->string
string.findAll(string)->list<string>
string.findAll(string,int)->list<string>
list<int>.isSorted()->bool
list<double>.isSorted()->bool
list<bool>.isSorted()->bool
list<string>.isSorted()->bool
list<bytes>.isSorted()->bool
list<timestamp>.isSorted()->bool
list<duration>.isSorted()->bool
list<uint>.isSorted()->bool
list<int>.sum()->int
list<uint>.sum()->uint
list<double>.sum()->double
list<duration>.sum()->duration
list<int>.min()->int
list<uint>.min()->uint
list<double>.min()->double
list<bool>.min()->bool
list<string>.min()->string
list<bytes>.min()->bytes
list<timestamp>.min()->timestamp
list<duration>.min()->duration
list<int>.max()->int
list<uint>.max()->uint
list<double>.max()->double
list<bool>.max()->bool
list<string>.max()->string
list<bytes>.max()->bytes
list<timestamp>.max()->timestamp
list<duration>.max()->duration
list<A>.indexOf(A)->int
list<A>.lastIndexOf(A)->int
list<A>.slice(int,int)->list<A>
list<list<A>>.flatten()->list<A>
list<dyn>.flatten(int)->list<dyn>
list<A>.reverse()->list<A>
list<A>.distinct()->list<A>
list<A>.first()->optional<A>
list<A>.last()->optional<A>
list<int>.sort()->list<int>
list<uint>.sort()->list<uint>
list<double>.sort()->list<double>
list<bool>.sort()->list<bool>
list<string>.sort()->list<string>
list<bytes>.sort()->list<bytes>
list<timestamp>.sort()->list<timestamp>
list<duration>.sort()->list<duration>
lists.range(int)->list<int>
sets.contains(list<A>,list<A>)->bool
sets.equivalent(list<A>,list<A>)->bool
sets.intersects(list<A>,list<A>)->bool
optional.of(A)->optional<A>
optional.ofNonZeroValue(A)->optional<A>
optional.none()->optional<A>
optional<A>.hasValue()->bool
optional<A>.value()->A
optional<A>.or(optional<A>)->optional<A>
optional<A>.orValue(A)->A
timestamp.getFullYear()->int
timestamp.getFullYear(string)->int
timestamp.getMonth()->int
timestamp.getMonth(string)->int
timestamp.getDayOfYear()->int
timestamp.getDayOfYear(string)->int
timestamp.getDayOfMonth()->int
timestamp.getDayOfMonth(string)->int
timestamp.getDate()->int
timestamp.getDate(string)->int
timestamp.getDayOfWeek()->int
timestamp.getDayOfWeek(string)->int
timestamp.getHours()->int
timestamp.getHours(string)->int
timestamp.getMinutes()->int
timestamp.getMinutes(string)->int
timestamp.getSeconds()->int
timestamp.getSeconds(string)->int
timestamp.getMilliseconds()->int
timestamp.getMilliseconds(string)->int
duration.getHours()->int
duration.getMinutes()->int
duration.getSeconds()->int
duration.getMilliseconds()->int
url(string)->url
isURL(string)->bool
url.getScheme()->string
url.getHost()->string
url.getHostname()->string
url.getPort()->string
url.getEscapedPath()->string
url.getQuery()->map<string,list<string>>
quantity(string)->quantity
isQuantity(string)->bool
sign(quantity)->int
quantity.isGreaterThan(quantity)->bool
quantity.isLessThan(quantity)->bool
quantity.compareTo(quantity)->int
quantity.asApproximateFloat()->double
quantity.asInteger()->int
quantity.isInteger()->bool
quantity.add(quantity)->quantity
quantity.add(int)->quantity
quantity.sub(quantity)->quantity
quantity.sub(int)->quantity
ip(string)->ip
isIP(string)->bool
ip.isCanonical(string)->bool
ip.family()->int
ip.isUnspecified()->bool
ip.isLoopback()->bool
ip.isLinkLocalMulticast()->bool
ip.isLinkLocalUnicast()->bool
ip.isGlobalUnicast()->bool
cidr(string)->cidr
isCIDR(string)->bool
cidr.containsIP(string)->bool
cidr.containsIP(ip)->bool
cidr.containsCIDR(string)->bool
cidr.containsCIDR(cidr)->bool
cidr.ip()->ip
cidr.prefixLength()->int
cidr.masked()->cidr
format.named(string)->optional<format>
format.validate(string)->optional<list<string>>
semver(string)->semver
semver(string,bool)->semver
isSemver(string)->bool
isSemver(string,bool)->bool
semver.isGreaterThan(semver)->bool
semver.isLessThan(semver)->bool
semver.compareTo(semver)->int
semver.major()->int
semver.minor()->int
semver.patch()->int
";

/// Names that stand for a space of functions, and the functions in them.
const SPACED: &[&str] = &[
    "sets.contains",
    "sets.equivalent",
    "sets.intersects",
    "optional.of",
    "optional.ofNonZeroValue",
    "optional.none",
    "strings.quote",
    "lists.range",
    "ip.isCanonical",
    "format.named",
];

/// The formats that have a function of their own.
pub(crate) const FORMATS: &[&str] = &[
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

/// Whether a dotted name is a function and not a member of a variable.
pub(crate) fn is_spaced(name: &str) -> bool {
    let format = name.strip_prefix("format.");
    SPACED.contains(&name) || format.is_some_and(|it| FORMATS.contains(&it))
}

/// What a call comes to.
pub(crate) enum Resolved {
    /// Nothing has this name.
    Unknown,
    /// Something has, but takes other arguments.
    Unfit,
    /// The type of the result.
    Is(Ty),
}

/// Finds what a call means by the types of its receiver and arguments.
pub(crate) fn resolve(name: &str, on: Option<&Ty>, args: &[Ty]) -> Resolved {
    if on.is_none() && name.starts_with("format.") && is_spaced(name) && name != "format.named" {
        return Resolved::Is(Ty::Opaque(FORMAT));
    }
    if let Some(resolved) = ordered(name, args) {
        return resolved;
    }
    let (mut is_known, mut result): (bool, Option<Ty>) = (false, None);
    for line in TABLE.lines() {
        let Some(found) = Overload::read(line, name) else {
            continue;
        };
        is_known = true;
        let Some(own) = found.fits(on, args) else {
            continue;
        };
        // More than one fits when an argument is dynamic.
        result = Some(match result {
            Some(before) if before != own => Ty::Dyn,
            _ => own,
        });
    }
    match result {
        Some(ty) => Resolved::Is(ty),
        None if is_known => Resolved::Unfit,
        None => Resolved::Unknown,
    }
}

/// `<` and its like: of one type, or of two numbers.
fn ordered(name: &str, args: &[Ty]) -> Option<Resolved> {
    let [one, two] = args else { return None };
    if !["_<_", "_<=_", "_>_", "_>=_"].contains(&name) {
        return None;
    }
    let is_number = |ty: &Ty| matches!(ty, Ty::Int | Ty::Uint | Ty::Double | Ty::Dyn);
    let is_ordered = |ty: &Ty| {
        matches!(
            ty,
            Ty::Bool | Ty::Text | Ty::Bytes | Ty::Duration | Ty::Time | Ty::Dyn
        )
    };
    let fits = (is_number(one) && is_number(two))
        || (is_ordered(one)
            && is_ordered(two)
            && (one == two || *one == Ty::Dyn || *two == Ty::Dyn));
    Some(if fits {
        Resolved::Is(Ty::Bool)
    } else {
        Resolved::Unfit
    })
}

const FORMAT: &str = "kubernetes.NamedFormat";

struct Overload<'t> {
    on: Option<&'t str>,
    args: &'t str,
    result: &'t str,
}

impl<'t> Overload<'t> {
    /// Reads a line of the table, if it declares this name.
    fn read(line: &'t str, name: &str) -> Option<Self> {
        let start = line.find(name)?;
        let (before, rest) = (&line[..start], &line[start + name.len()..]);
        let args = rest.strip_prefix('(')?;
        let (args, result) = args.split_once(")->")?;
        let on = match before {
            "" => None,
            _ if is_spaced(&format!("{before}{name}")) => return None,
            before => Some(before.strip_suffix('.')?),
        };
        Some(Self { on, args, result })
    }

    fn fits(&self, on: Option<&Ty>, args: &[Ty]) -> Option<Ty> {
        let mut bound = Bound::new();
        match (self.on, on) {
            (None, None) => {}
            (Some(own), Some(found)) => {
                ty(own).takes(found, &mut bound).then_some(())?;
            }
            _ => return None,
        }
        let own = split(self.args);
        if own.len() != args.len() {
            return None;
        }
        for (own, found) in own.iter().zip(args) {
            ty(own).takes(found, &mut bound).then_some(())?;
        }
        Some(ty(self.result).with(&bound))
    }
}

/// Splits types at the commas that are not inside of one.
fn split(texts: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in texts.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&texts[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if start < texts.len() {
        parts.push(&texts[start..]);
    }
    parts
}

fn ty(text: &str) -> Ty {
    if let Some((name, inner)) = text.strip_suffix('>').and_then(|it| it.split_once('<')) {
        let inner: Vec<Rc<Ty>> = split(inner).into_iter().map(|it| Rc::new(ty(it))).collect();
        return match (name, inner.as_slice()) {
            ("list", [of]) => Ty::List(Rc::clone(of)),
            ("optional", [of]) => Ty::Optional(Rc::clone(of)),
            ("map", [key, value]) => Ty::Map(Rc::clone(key), Rc::clone(value)),
            _ => Ty::Dyn,
        };
    }
    match text {
        "bool" => Ty::Bool,
        "int" => Ty::Int,
        "uint" => Ty::Uint,
        "double" => Ty::Double,
        "string" => Ty::Text,
        "bytes" => Ty::Bytes,
        "duration" => Ty::Duration,
        "timestamp" => Ty::Time,
        "type" => Ty::Type,
        "url" => Ty::Opaque("kubernetes.URL"),
        "quantity" => Ty::Opaque("kubernetes.Quantity"),
        "ip" => Ty::Opaque("net.IP"),
        "cidr" => Ty::Opaque("net.CIDR"),
        "format" => Ty::Opaque(FORMAT),
        "semver" => Ty::Opaque("kubernetes.Semver"),
        "A" => Ty::Param('A'),
        "B" => Ty::Param('B'),
        _ => Ty::Dyn,
    }
}

#[cfg(test)]
mod tests {
    use super::{Resolved, TABLE, Ty, resolve, split, ty};

    fn found(name: &str, on: Option<&str>, args: &str) -> String {
        let args: Vec<Ty> = split(args).into_iter().map(ty).collect();
        match resolve(name, on.map(ty).as_ref(), &args) {
            Resolved::Unknown => "unknown".into(),
            Resolved::Unfit => "unfit".into(),
            Resolved::Is(ty) => ty.to_string(),
        }
    }

    #[test]
    fn finds_functions_by_what_they_take() {
        assert_eq!(found("size", None, "list<int>"), "int");
        assert_eq!(found("_+_", None, "list<int>,list<dyn>"), "list(dyn)");
        assert_eq!(
            found("_[_]", None, "map<string,list<int>>,string"),
            "list(int)"
        );
        assert_eq!(found("_[_]", None, "map<string,int>,int"), "unfit");
        assert_eq!(found("sum", Some("list<string>"), ""), "unfit");
        assert_eq!(found("orValue", Some("optional<int>"), "int"), "int");
        assert_eq!(found("nope", None, ""), "unknown");
        assert_eq!(found("find", Some("string"), "string"), "string");
        assert_eq!(found("_<_", None, "int,double"), "bool");
        assert_eq!(found("_<_", None, "int,string"), "unfit");
        assert_eq!(found("_==_", None, "int,double"), "unfit");
        assert_eq!(found("add", Some("quantity"), "int"), "kubernetes.Quantity");
    }

    #[test]
    fn every_line_of_the_table_reads() {
        for line in TABLE.lines().filter(|line| !line.is_empty()) {
            assert!(line.contains('(') && line.contains(")->"), "{line}");
        }
    }
}
