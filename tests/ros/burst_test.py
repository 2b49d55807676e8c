"""Many requests at once: none may be lost."""

import unittest

from gr00t_blackhole.srv import GetContract, SetInstruction
from lifecycle_msgs.srv import GetState
from node_case import PATIENCE, NodeCase
from rcl_interfaces.srv import GetParameters
from rclpy.qos import QoSProfile
from rig import NODE, parameters, synthetic_snapshot

BURST = 50
# The client must not lose answers itself.
QOS = QoSProfile(depth=10 * BURST)


class BurstTest(NodeCase):
    def test_every_request_of_a_burst_is_answered(self):
        node, peer = self.start_node(parameters(synthetic_snapshot('tiny'), rate_hz=0.0))
        node.wait_for_log('ready as', PATIENCE)
        for kind, service, request in (
            (GetContract, 'get_contract', GetContract.Request()),
            (GetParameters, 'get_parameters', GetParameters.Request(names=['rate_hz'])),
            (GetState, 'get_state', GetState.Request()),
            (SetInstruction, 'set_instruction', SetInstruction.Request(instruction='pick the pear')),
        ):
            with self.subTest(service):
                client = peer.client(kind, f'{NODE}/{service}', QOS)
                futures = [client.call_async(request) for _ in range(BURST)]
                answered = lambda futures=futures: sum(future.done() for future in futures)
                try:
                    peer.wait_for(lambda: answered() == BURST, PATIENCE, 'every answer')
                except AssertionError:
                    self.fail(f'{answered()} of {BURST} requests were answered')


if __name__ == '__main__':
    unittest.main()
