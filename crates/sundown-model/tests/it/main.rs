//! What the contract forbids does not compile; what it promises holds.

mod cache;

#[test]
fn what_the_contract_forbids_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
