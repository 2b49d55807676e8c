"""The node on a device whose worker fails in every way: what clients are told, and that the node recovers by itself."""

import os
import signal
import time
import unittest

from action_msgs.msg import GoalStatus
from diagnostics_test import BACKEND, ENGINE, ERROR, OK, DiagnosticsCase, levels
from faulty_device import ENVIRONMENT, FaultyDevice
from gates_test import change
from gr00t_blackhole.action import PredictChunk
from harness import NodeProcess, domain
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from node_case import PATIENCE
from rig import INSTRUCTION, NODE, Robot

Result = PredictChunk.Result

# Longest wait for a device to be started, with all its programs [s].
START_LIMIT_S = 120

# A device that is in use is told of within this [s].
BUSY_LIMIT_S = 5.0

# A goal in the middle of a stage has ended so long after it was cancelled [s].
CANCEL_LIMIT_S = 2.0


class DeviceCase(DiagnosticsCase):
    def start(self, **changes):
        number = self.enterContext(domain())
        self.device = self.enterContext(FaultyDevice(number))
        self.node, self.peer = self.start_node(self.device.parameters(**changes), environment=ENVIRONMENT)
        self.listen()

    def transition(self, number):
        """Whether it was made."""
        request = ChangeState.Request(transition=Transition(id=number))
        return self.peer.call(ChangeState, f'{NODE}/change_state', request, START_LIMIT_S).success

    def wait_until_active(self):
        self.line(self.node, self.peer, 'ready as', START_LIMIT_S)

    def state(self):
        return self.peer.call(GetState, f'{NODE}/get_state', GetState.Request()).current_state.label

    def send_goal(self, client, chunks=1000):
        """The goal, and the future of its result."""
        goal = client.send_goal_async(PredictChunk.Goal(instruction=INSTRUCTION, chunks=chunks))
        self.peer.wait_for(goal.done, PATIENCE, 'an answer to the goal')
        self.assertTrue(goal.result().accepted)
        return goal.result(), goal.result().get_result_async()

    def wait_for_fault(self):
        self.peer.wait_for(self.device.has_failed, PATIENCE, 'the fault')

    def wait_for_next_chunk(self):
        count = len(self.chunks)
        self.peer.wait_for(lambda: len(self.chunks) > count, PATIENCE, 'a chunk')

    def assert_lost(self, stage, reason):
        """The backend's diagnostics say it, with the worker's last words."""
        is_this = lambda level, message, values: (
            level in levels(ERROR) and f"lost in stage '{stage}'" in message and reason in message
        )
        return self.wait_for_status(BACKEND, is_this, f'an error about {stage}')[2]

    def wait_for_recovery(self):
        return self.wait_for_level(BACKEND, OK, START_LIMIT_S)[2]


class StartTest(DeviceCase):
    def test_a_start_that_fails_leaves_the_node_unconfigured(self):
        self.start(autostart=False, rate_hz=0.0)
        for request, how, part, reason in [
            ('open', 'kill', 'open', 'signal 9'),
            ('upload', 'kill', 'weights', 'signal 9'),
            ('build', 'kill', 'programs', 'signal 9'),
            ('run', 'kill', 'first run', 'signal 9'),
            ('begin_capture', 'garbage', 'capture', "reply to 'begin_capture' is none"),
        ]:
            with self.subTest(request=request):
                self.device.fail(request, how)
                self.assertFalse(self.transition(Transition.TRANSITION_CONFIGURE))
                said = self.line(self.node, self.peer, f"stage 'start: {part}'")
                self.assertIn(reason, said)
                self.line(self.node, self.peer, f'last words before {request}')
                self.assertEqual(self.state(), 'unconfigured')
        self.device.claim('0.80.0')
        self.assertFalse(self.transition(Transition.TRANSITION_CONFIGURE))
        self.line(self.node, self.peer, "'0.80.0', this node needs '0.81.1' exactly")
        self.device.claim(None)

        # While the device is started, which takes minutes on a simulator, the node answers and tells how far it is.
        self.device.fail('upload', 'slow')
        configured = self.peer.client(ChangeState, f'{NODE}/change_state').call_async(
            ChangeState.Request(transition=Transition(id=Transition.TRANSITION_CONFIGURE))
        )
        self.wait_for_fault()
        self.assertEqual(self.state(), 'configuring')
        starts = lambda level, message, values: values.get('device state', '').startswith("starts, at 'weights'")
        level, message, _ = self.wait_for_status(BACKEND, starts, 'the start')
        self.assertEqual((level, message), (*levels(OK), 'the policy is being configured'))
        self.peer.wait_for(configured.done, START_LIMIT_S, 'the transition')
        self.assertTrue(configured.result().success)

        values = self.wait_for_status(BACKEND, lambda *status: 'driver' in status[2], 'telemetry')[2]
        self.assertEqual(values['device state'], 'ready')
        self.assertEqual(values['device'], f'blackhole {self.device.number}')
        self.assertEqual((values['tt-metal'], values['cores']), ('0.81.1', '11 x 10'))
        self.assertEqual((values['DRAM banks'], values['L1 of a core [bytes]']), ('8', '1395712'))
        self.assertEqual((values['cache of kernels'], values['temperature [deg C]']), ('cold', 'unknown'))
        self.assertGreater(float(values['arena [MiB]']), 0)
        self.assertGreater(float(values['device denoise given up after [ms]']), 0)
        os.kill(int(values['worker process']), 0)

    def test_what_is_wrong_before_the_device_is_opened_is_named(self):
        number = self.enterContext(domain())
        device = self.enterContext(FaultyDevice(number))
        for changes, reason in [
            ({'backend': 'sim'}, "parameter 'backend' is 'sim': no simulator: set TT_METAL_SIMULATOR"),
            ({'cache_dir': '/proc/none'}, "the kernels cannot be put into '/proc/none"),
            ({'device_python': '/nowhere/python'}, "'/nowhere/python' cannot be started"),
        ]:
            with self.subTest(reason=reason):
                given = device.parameters(**changes)
                with NodeProcess(given, domain_id=number, environment=ENVIRONMENT) as node:
                    self.assertNotEqual(node.process.wait(PATIENCE), 0)
                    node._reader.join(1)
                    self.assertIn(reason, node.log())


class BusyTest(DeviceCase):
    def test_case_84_a_second_node_is_told_who_has_the_device(self):
        self.start(rate_hz=0.0)
        self.wait_until_active()
        given = self.device.parameters()
        begin = time.monotonic()
        with NodeProcess(given, domain_id=self.node.domain_id, environment=ENVIRONMENT) as second:
            self.assertNotEqual(second.process.wait(PATIENCE), 0)
            self.assertLess(time.monotonic() - begin, BUSY_LIMIT_S)
            second._reader.join(1)
            self.assertIn(f'device {self.device.number} is in use by process {self.node.process.pid}', second.log())
        self.assertTrue(self.node.running())


class LossTest(DeviceCase):
    def test_case_49_a_lost_worker_costs_the_goal_and_the_node_recovers(self):
        # The instruction, as long as those of the goals, is what the device is made ready for.
        self.start(rate_hz=20.0)
        self.wait_until_active()
        Robot(self.peer)
        self.wait_for_next_chunk()
        client = self.peer.action_client(PredictChunk, f'{NODE}/predict_chunk')

        # Nobody asks for anything.
        change(self, self.peer, instruction='')
        values = self.wait_for_status(BACKEND, lambda *status: 'worker process' in status[2], 'the worker')[2]
        os.kill(int(values['worker process']), signal.SIGKILL)
        self.assert_lost('idle', 'signal 9')
        self.assertNotEqual(self.wait_for_recovery()['worker process'], values['worker process'])

        # In the middle of a goal.
        goal, result = self.send_goal(client)
        self.wait_for_next_chunk()
        self.device.fail('replay', 'kill')
        self.peer.wait_for(result.done, PATIENCE, 'the result')
        self.assertEqual(result.result().status, GoalStatus.STATUS_ABORTED)
        ended = result.result().result
        self.assertEqual(ended.reason, Result.BACKEND_FAULT)
        self.assertRegex(ended.message, "stage '(vision|llm|adapter|denoise)'")
        self.assertIn("last request was 'replay'", ended.message)
        stage = ended.message.split("stage '")[1].split("'")[0]
        values = self.assert_lost(stage, 'signal 9')
        self.assertEqual(values['worker wrote last'], 'last words before replay')
        self.wait_for_recovery()

        # By the timer, which goes on by itself. So many times make the watchdog's limit shorter than the 30 s at the start.
        change(self, self.peer, instruction=INSTRUCTION)
        self.peer.wait_for(lambda: len(self.chunks) > 30, PATIENCE, 'chunks')
        self.device.fail('replay', 'hang')
        self.wait_for_fault()
        hung = time.monotonic()
        engine = lambda level, message, values: level in levels(ERROR) and "no reply to 'replay'" in message
        self.wait_for_status(ENGINE, engine, 'an error')
        self.assertLess(time.monotonic() - hung, 10)
        count = len(self.chunks)
        self.wait_for_recovery()
        self.peer.wait_for(lambda: len(self.chunks) > count + 1, PATIENCE, 'chunks after the recovery')
        # Whether the machine keeps up with the timer is another matter.
        self.wait_for_status(ENGINE, lambda level, *_: level not in levels(ERROR), 'no error')

        # What comes on the socket is none of the protocol's.
        self.device.fail('read', 'garbage')
        self.assert_lost('actions', "reply to 'read' is none")
        self.assertTrue(self.node.running())
        self.assertEqual(self.node.stop().code, 0)

    def test_a_stage_that_takes_long_holds_up_neither_goals_nor_the_lifecycle(self):
        self.start(rate_hz=0.0)
        self.wait_until_active()
        Robot(self.peer)
        client = self.peer.action_client(PredictChunk, f'{NODE}/predict_chunk')
        goal, result = self.send_goal(client)
        self.wait_for_next_chunk()
        self.device.fail('replay', 'slow')
        self.wait_for_fault()
        begin = time.monotonic()
        cancelled = goal.cancel_goal_async()
        self.peer.wait_for(result.done, PATIENCE, 'the result')
        self.assertLess(time.monotonic() - begin, CANCEL_LIMIT_S)
        self.assertTrue(cancelled.done())
        self.assertEqual(result.result().result.reason, Result.CANCELLED)
        # The device is not lost by that: the next goal has its chunk.
        _, result = self.send_goal(client, chunks=1)
        self.peer.wait_for(result.done, PATIENCE, 'the result')
        self.assertEqual(result.result().result.reason, Result.SUCCEEDED)
        _, _, values = self.wait_for_status(BACKEND, lambda *_: True, 'said')
        self.assertEqual((values['device sessions'], values['device losses']), ('1', '0'))

        # A prediction that is abandoned keeps the device until its stage ends; the next policy waits for that.
        self.send_goal(client)
        self.device.fail('replay', 'slow')
        self.wait_for_fault()
        for transition in ('DEACTIVATE', 'CLEANUP', 'CONFIGURE'):
            number = getattr(Transition, f'TRANSITION_{transition}')
            self.assertTrue(self.transition(number), transition)


if __name__ == '__main__':
    unittest.main()
