//! The node with real processes. The test binary is executed again as the node, as pods' and
//! containers' inits, and as a client that is killed, so its `main` comes first.
#![allow(clippy::print_stdout, reason = "a test runner prints its results")]
#![allow(
    clippy::unwrap_used,
    reason = "test code, which clippy does not recognise without the usual harness"
)]

mod closed;
mod death;
mod files;
mod gone;
mod keyring;
mod life;
mod many;
mod network;
mod outdated;
mod release;
mod runner;
mod world;

use std::process::ExitCode;

use runner::Test;

/// Every test: as root and, in a second run, as an unprivileged user.
const TESTS: &[Test] = &[
    (
        "life::exit_codes_and_signals_are_recorded",
        life::exit_codes_and_signals_are_recorded,
    ),
    (
        "life::a_command_that_is_not_there_says_so",
        life::a_command_that_is_not_there_says_so,
    ),
    (
        "life::attempts_are_started_once",
        life::attempts_are_started_once,
    ),
    (
        "life::a_pod_that_ignores_sigterm_is_removed",
        life::a_pod_that_ignores_sigterm_is_removed,
    ),
    (
        "life::a_double_fork_dies_with_its_container",
        life::a_double_fork_dies_with_its_container,
    ),
    (
        "life::signals_reach_the_command",
        life::signals_reach_the_command,
    ),
    (
        "life::what_the_starter_ignores_reaches_containers",
        life::what_the_starter_ignores_reaches_containers,
    ),
    (
        "life::a_log_without_end_is_bounded",
        life::a_log_without_end_is_bounded,
    ),
    (
        "life::commands_run_inside_a_container",
        life::commands_run_inside_a_container,
    ),
    (
        "life::the_choice_of_isolation_is_told",
        life::the_choice_of_isolation_is_told,
    ),
    (
        "life::a_container_knows_its_home_and_its_name",
        life::a_container_knows_its_home_and_its_name,
    ),
    (
        "life::another_user_runs_where_there_is_one",
        life::another_user_runs_where_there_is_one,
    ),
    (
        "files::mount_paths_need_not_exist_on_the_host",
        files::mount_paths_need_not_exist_on_the_host,
    ),
    (
        "files::the_host_is_read_only_and_homes_are_fresh",
        files::the_host_is_read_only_and_homes_are_fresh,
    ),
    (
        "files::secrets_are_on_no_disk",
        files::secrets_are_on_no_disk,
    ),
    (
        "files::containers_share_volumes_and_shm",
        files::containers_share_volumes_and_shm,
    ),
    (
        "files::host_paths_are_checked",
        files::host_paths_are_checked,
    ),
    (
        "files::a_link_does_not_lead_around_the_closed_paths",
        files::a_link_does_not_lead_around_the_closed_paths,
    ),
    (
        "files::a_sub_path_cannot_leave_its_volume",
        files::a_sub_path_cannot_leave_its_volume,
    ),
    (
        "files::two_containers_make_the_same_directories_at_once",
        files::two_containers_make_the_same_directories_at_once,
    ),
    (
        "files::a_read_only_root_keeps_volumes_writable",
        files::a_read_only_root_keeps_volumes_writable,
    ),
    (
        "closed::what_the_starter_left_open_reaches_no_container",
        closed::what_the_starter_left_open_reaches_no_container,
    ),
    (
        "closed::a_working_directory_does_not_lead_through_proc",
        closed::a_working_directory_does_not_lead_through_proc,
    ),
    (
        "closed::rights_are_few_and_cannot_grow",
        closed::rights_are_few_and_cannot_grow,
    ),
    (
        "closed::rights_that_are_given_up_are_gone",
        closed::rights_that_are_given_up_are_gone,
    ),
    (
        "closed::ping_works_without_raw_packets",
        closed::ping_works_without_raw_packets,
    ),
    (
        "closed::parts_of_the_kernel_are_hidden",
        closed::parts_of_the_kernel_are_hidden,
    ),
    (
        "closed::devices_are_used_and_not_changed",
        closed::devices_are_used_and_not_changed,
    ),
    (
        "closed::settings_of_the_machine_are_shown_by_a_list",
        closed::settings_of_the_machine_are_shown_by_a_list,
    ),
    (
        "closed::memory_is_given_out_by_size",
        closed::memory_is_given_out_by_size,
    ),
    (
        "closed::what_is_mounted_below_a_read_only_host_path_is_read_only",
        closed::what_is_mounted_below_a_read_only_host_path_is_read_only,
    ),
    (
        "closed::entries_that_are_swapped_lead_nowhere",
        closed::entries_that_are_swapped_lead_nowhere,
    ),
    (
        "closed::the_nodes_own_program_is_read_only_inside",
        closed::the_nodes_own_program_is_read_only_inside,
    ),
    (
        "closed::accounts_of_a_container_are_read_with_care",
        closed::accounts_of_a_container_are_read_with_care,
    ),
    (
        "keyring::keys_of_the_starter_reach_no_container",
        keyring::keys_of_the_starter_reach_no_container,
    ),
    (
        "network::pods_talk_by_name_on_the_same_port",
        network::pods_talk_by_name_on_the_same_port,
    ),
    (
        "network::names_are_answered_at_once",
        network::names_are_answered_at_once,
    ),
    (
        "network::what_is_outside_is_refused_not_dropped",
        network::what_is_outside_is_refused_not_dropped,
    ),
    (
        "network::the_host_dials_probes_and_forwards",
        network::the_host_dials_probes_and_forwards,
    ),
    (
        "network::a_forward_judges_every_request_of_a_connection",
        network::a_forward_judges_every_request_of_a_connection,
    ),
    ("network::pods_reach_the_door", network::pods_reach_the_door),
    (
        "network::the_way_out_is_a_proxy",
        network::the_way_out_is_a_proxy,
    ),
    (
        "network::addresses_are_kept_and_checked",
        network::addresses_are_kept_and_checked,
    ),
    (
        "death::a_killed_client_finds_its_pods_again",
        death::a_killed_client_finds_its_pods_again,
    ),
    (
        "death::a_killed_node_leaves_nothing_but_records",
        death::a_killed_node_leaves_nothing_but_records,
    ),
    (
        "death::a_killed_pod_init_is_a_lost_pod",
        death::a_killed_pod_init_is_a_lost_pod,
    ),
    (
        "death::a_node_that_does_not_answer_is_named",
        death::a_node_that_does_not_answer_is_named,
    ),
    ("death::an_idle_node_ends", death::an_idle_node_ends),
    (
        "death::two_clients_share_a_node",
        death::two_clients_share_a_node,
    ),
    (
        "gone::a_node_whose_directory_is_removed_ends_with_its_pods",
        gone::a_node_whose_directory_is_removed_ends_with_its_pods,
    ),
    (
        "gone::a_node_whose_directory_is_moved_ends_with_its_pods",
        gone::a_node_whose_directory_is_moved_ends_with_its_pods,
    ),
    (
        "gone::a_node_whose_directory_is_replaced_touches_nothing_of_the_next",
        gone::a_node_whose_directory_is_replaced_touches_nothing_of_the_next,
    ),
    (
        "gone::a_node_goes_on_while_files_in_its_directory_come_and_go",
        gone::a_node_goes_on_while_files_in_its_directory_come_and_go,
    ),
    (
        "outdated::a_node_of_another_version_is_ended_with_its_pods",
        outdated::a_node_of_another_version_is_ended_with_its_pods,
    ),
    (
        "release::a_released_pod_keeps_its_records_and_logs_only",
        release::a_released_pod_keeps_its_records_and_logs_only,
    ),
    (
        "release::what_containers_hid_goes_with_their_node",
        release::what_containers_hid_goes_with_their_node,
    ),
    (
        "many::a_hundred_pods_come_and_go",
        many::a_hundred_pods_come_and_go,
    ),
];

fn main() -> ExitCode {
    if let Some(code) = sundown_node::stage(std::env::args_os()) {
        return code;
    }
    if let Some(code) = closed::role() {
        return code;
    }
    if let Some(code) = keyring::role() {
        return code;
    }
    if let Some(code) = outdated::role() {
        return code;
    }
    if let Some(code) = death::role() {
        return code;
    }
    runner::run(TESTS)
}
