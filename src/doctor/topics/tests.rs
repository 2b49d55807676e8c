use super::*;

const NS: i64 = 1_000_000_000;
/// The clock of the node, in the tests.
const NOW: i64 = 1_700_000_000 * NS;

fn camera() -> Input {
    Input {
        role: Role::Camera(0),
        subject: "camera 'ego'".to_owned(),
        topic: "/ego".to_owned(),
        given: "/ego".to_owned(),
        parameter: "camera.ego.topic".to_owned(),
        message_type: "sensor_msgs/msg/Image",
        qos: Profile::SENSOR_DATA,
        max_age_parameter: "camera_max_age_ms",
        max_age_ns: NS / 2,
        timeline: Timeline::Stamp,
    }
}

fn transforms(fixed: bool) -> Input {
    let qos = if fixed { Profile::latched(100) } else { Profile::reliable(100) };
    let message_type = "tf2_msgs/msg/TFMessage";
    Input {
        role: Role::Transforms { fixed },
        message_type,
        qos,
        timeline: Timeline::Receive,
        ..camera()
    }
}

fn publisher(input: &Input) -> Publisher {
    Publisher {
        node: "/driver".to_owned(),
        message_type: input.message_type.to_owned(),
        qos: Profile::latched(1),
    }
}

/// 31 messages in 3 s, the last one 10 ms old when it came.
fn heard() -> Heard {
    let at = Moment { ros_ns: NOW, steady_ns: 3 * NS };
    let newest = Newest { at, read: Ok(Some(NOW - NS / 100)) };
    Heard { messages: 31, first_ns: 0, last_ns: 3 * NS, newest: Some(newest) }
}

fn read(read: Result<Option<i64>, String>) -> Heard {
    let at = heard().newest.expect("newest").at;
    Heard { newest: Some(Newest { at, read }), ..heard() }
}

fn listened<'a>() -> Listened<'a> {
    Listened { seconds: 3.0, until_ns: 3 * NS, rate_hz: Some(2.0), topics: &[], poses_known: true }
}

/// The only finding about a topic with one publisher.
fn only(input: &Input, heard: &Heard) -> Finding {
    let findings = check(input, &[publisher(input)], heard, listened());
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings[0].clone()
}

fn assert_fails(finding: &Finding, found: &str, fix: &str) {
    assert_eq!(finding.level, Level::Fail, "{finding}");
    assert!(finding.found.contains(found), "{finding}");
    assert!(finding.fix.as_ref().is_some_and(|text| text.contains(fix)), "{finding}");
    assert!(finding.subject.contains("on /ego"), "{finding}");
}

#[test]
fn a_topic_that_is_fine() {
    let finding = only(&camera(), &heard());
    assert_eq!(finding.to_string(), "ok    camera 'ego' on /ego: 10.0 Hz, 10 ms old when it comes");
}

#[test]
fn nobody_publishes() {
    let topics = [
        ("/other".to_owned(), "sensor_msgs/msg/Image".to_owned()),
        ("/joints".to_owned(), "sensor_msgs/msg/JointState".to_owned()),
    ];
    let there = Listened { topics: &topics, ..listened() };
    let [finding] = &check(&camera(), &[], &Heard::default(), there)[..] else { panic!("one") };
    assert_fails(finding, "nobody publishes", "camera.ego.topic (of its type there are: /other)");
    let [finding] = &check(&camera(), &[], &Heard::default(), listened())[..] else {
        panic!("one")
    };
    assert_fails(finding, "nobody publishes", "no topic of sensor_msgs/msg/Image is published");
}

#[test]
fn another_type() {
    let mut wrong = publisher(&camera());
    wrong.message_type = "sensor_msgs/msg/CompressedImage".to_owned();
    let findings = check(&camera(), &[wrong], &Heard::default(), listened());
    assert_eq!(findings.len(), 1);
    assert_fails(&findings[0], "/driver publishes sensor_msgs/msg/CompressedImage", "transport");
}

#[test]
fn case_26_qos_that_does_not_match() {
    for (fixed, offered, sentence) in [
        (false, Profile::SENSOR_DATA, "the reliability does not suit"),
        (true, Profile::reliable(1), "the durability does not suit"),
    ] {
        let input = transforms(fixed);
        let publishers = [Publisher { qos: offered, ..publisher(&input) }];
        let findings = check(&input, &publishers, &Heard::default(), listened());
        assert_eq!(findings.len(), 1);
        assert_fails(&findings[0], sentence, "publish it with the QoS");
    }
    let best_effort = [Publisher { qos: Profile::SENSOR_DATA, ..publisher(&camera()) }];
    let findings = check(&camera(), &best_effort, &heard(), listened());
    assert_eq!(findings[0].level, Level::Ok, "{findings:?}");
}

#[test]
fn two_publishers_contradict_each_other_but_for_transforms() {
    let two =
        [publisher(&camera()), Publisher { node: "/second".to_owned(), ..publisher(&camera()) }];
    let findings = check(&camera(), &two, &heard(), listened());
    assert_eq!(findings.len(), 2);
    assert_fails(&findings[0], "2 publishers: /driver, /second", "leave one");
    let tf = transforms(false);
    let findings = check(&tf, &[publisher(&tf), publisher(&tf)], &read(Ok(None)), listened());
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].level, Level::Ok, "{findings:?}");
}

#[test]
fn case_63_published_but_silent() {
    assert_fails(&only(&camera(), &Heard::default()), "no message came in 3 s", "same user");
    // Frames that never move are on /tf_static alone, and moving ones on /tf.
    assert_eq!(only(&transforms(false), &Heard::default()).level, Level::Ok);
    let findings = check(&transforms(true), &[], &Heard::default(), listened());
    assert_eq!(findings[0].level, Level::Ok, "{findings:?}");
    // Where poses are missing for it, nothing is well about that.
    let listened = Listened { poses_known: false, ..listened() };
    for publishers in [vec![], vec![publisher(&transforms(false))]] {
        let findings = check(&transforms(false), &publishers, &Heard::default(), listened);
        assert_eq!((findings.len(), findings[0].level), (1, Level::Warn), "{findings:?}");
    }
}

#[test]
fn case_54_stamps_that_are_zero_or_of_another_clock() {
    assert_fails(
        &only(&camera(), &read(Ok(Some(0)))),
        "header.stamp is 0",
        "`timeline` to receive",
    );
    let behind = only(&camera(), &read(Ok(Some(12 * NS))));
    assert_fails(&behind, "behind the node's clock", "`timeline` to receive");
    let ahead = only(&camera(), &read(Ok(Some(NOW + 60 * NS))));
    assert_fails(&ahead, "60.000 s ahead of the node's clock", "`timeline` to receive");
    let receive = Input { timeline: Timeline::Receive, ..camera() };
    assert_eq!(only(&receive, &read(Ok(Some(0)))).level, Level::Ok);
}

#[test]
fn stale_or_stopped() {
    let late = read(Ok(Some(NOW - NS)));
    assert_fails(
        &only(&camera(), &late),
        "stale: 1.000 s old when it comes (limit 0.500 s)",
        "camera_max_age_ms",
    );
    let stopped = Heard { last_ns: NS, ..heard() };
    assert_fails(&only(&camera(), &stopped), "nothing for the last 2.0 s", "camera_max_age_ms");
    // What holds for all time may be said once.
    let once = Heard { messages: 1, last_ns: 0, ..read(Ok(None)) };
    let finding = only(&transforms(true), &once);
    assert_eq!(finding.to_string(), "ok    camera 'ego' on /ego: 1 message");
    // Several that are heard at once, as soon as the topic is subscribed to, are no rate.
    let three = Heard { messages: 3, first_ns: 0, last_ns: 20_000, ..read(Ok(None)) };
    let finding = only(&transforms(true), &three);
    assert_eq!(finding.to_string(), "ok    camera 'ego' on /ego: 3 messages");
}

#[test]
fn messages_that_the_node_would_refuse() {
    let finding = only(&camera(), &read(Err("joint 'a' is missing".to_owned())));
    assert_fails(&finding, "the message is refused: joint 'a' is missing", "the driver");
}

#[test]
fn slower_than_the_node_predicts() {
    let fast = Listened { rate_hz: Some(20.0), ..listened() };
    let findings = check(&camera(), &[publisher(&camera())], &heard(), fast);
    assert_eq!(findings[0].level, Level::Warn, "{findings:?}");
    let without = Listened { rate_hz: None, ..listened() };
    let findings = check(&camera(), &[publisher(&camera())], &heard(), without);
    assert_eq!(findings[0].level, Level::Ok, "{findings:?}");
}

#[test]
fn case_30_the_clock() {
    let one = ["/sim".to_owned()];
    let two = ["/sim".to_owned(), "/bag".to_owned()];
    for (simulated, publishers, now_ns, level) in [
        (false, &[][..], None, Level::Ok),
        (false, &one[..], Some(5 * NS), Level::Warn),
        (true, &[][..], None, Level::Fail),
        (true, &one[..], None, Level::Fail),
        (true, &one[..], Some(0), Level::Fail),
        (true, &one[..], Some(5 * NS), Level::Ok),
        (true, &two[..], Some(5 * NS), Level::Fail),
    ] {
        let finding = clock(simulated, publishers, now_ns);
        assert_eq!(finding.level, level, "{finding}");
    }
}

#[test]
fn the_name_of_a_running_node() {
    assert_eq!(name("/policy", 0).level, Level::Ok);
    assert_eq!(name("/policy", 1).level, Level::Ok);
    assert_eq!(name("/policy", 2).level, Level::Warn);
}
