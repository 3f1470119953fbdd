//! The order of a list after its merge.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ListRule;

/// Upstream's order: the named elements as named, the others woven in where the server had them.
pub(super) fn ordered(
    list: Vec<Value>,
    named: &Ranks,
    server: &Ranks,
    rule: ListRule,
) -> Vec<Value> {
    let ranked = list.into_iter().map(|own| {
        let id = id(&own, rule);
        let rank = |order: &Ranks| order.get(&id).copied();
        (rank(named), rank(server), own)
    });
    let (mut sent, mut kept): (Vec<_>, Vec<_>) = ranked.partition(|(named, ..)| named.is_some());
    sent.sort_by_key(|(named, ..)| *named);
    kept.sort_by_key(|(_, server, _)| *server);
    let (mut sent, mut kept) = (sent.into_iter().peekable(), kept.into_iter().peekable());
    let mut woven = Vec::new();
    loop {
        let is_kept_first = match (kept.peek(), sent.peek()) {
            (Some(_), None) => true,
            (Some((_, Some(kept), _)), Some((_, Some(sent), _))) => kept < sent,
            (None, _) | (Some(_), Some(_)) => false,
        };
        let next = if is_kept_first {
            kept.next()
        } else {
            sent.next()
        };
        match next {
            Some((.., next)) => woven.push(next),
            None => return woven,
        }
    }
}

/// Where each element of a list is, by what tells it apart.
pub(super) type Ranks = BTreeMap<String, usize>;

/// Where each element of a list is; of equal ones the first.
pub(super) fn ranks(order: &[Value], rule: ListRule) -> Ranks {
    ranks_of(order.iter(), rule)
}

/// The same of elements that come from elsewhere.
pub(super) fn ranks_of<'a>(order: impl Iterator<Item = &'a Value>, rule: ListRule) -> Ranks {
    let mut ranks = Ranks::new();
    for (index, element) in order.enumerate() {
        ranks.entry(id(element, rule)).or_insert(index);
    }
    ranks
}

/// What tells an element apart from others; empty where it has no key.
pub(super) fn id(element: &Value, rule: ListRule) -> String {
    match rule {
        ListRule::ByKey(key) => element.get(key).map_or(String::new(), Value::to_string),
        ListRule::Set | ListRule::Atomic => element.to_string(),
    }
}
