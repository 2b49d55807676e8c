"""Whether the policy is served: exit status 0, or 1 and one sentence.

    healthcheck.py node [NAME]     the node has loaded its policy (lifecycle state inactive or active); NAME: /policy
    healthcheck.py http [URL]      GET /health says ok; URL: http://127.0.0.1:20000
"""

import json
import sys
import urllib.request

# Longest wait for an answer [s].
LIMIT_S = 8.0


def node(name='/policy'):
    import rclpy
    from lifecycle_msgs.msg import State
    from lifecycle_msgs.srv import GetState

    rclpy.init(args=[])
    try:
        asker = rclpy.create_node('healthcheck', start_parameter_services=False, enable_rosout=False)
        client = asker.create_client(GetState, f'{name}/get_state')
        if not client.wait_for_service(LIMIT_S):
            return f'no node {name} is there'
        answer = client.call_async(GetState.Request())
        rclpy.spin_until_future_complete(asker, answer, timeout_sec=LIMIT_S)
        if not answer.done():
            return f'{name} does not answer'
        state = answer.result().current_state
    finally:
        rclpy.shutdown()
    if state.id not in (State.PRIMARY_STATE_INACTIVE, State.PRIMARY_STATE_ACTIVE):
        return f'{name} is {state.label}'
    return None


def http(url='http://127.0.0.1:20000'):
    try:
        with urllib.request.urlopen(f'{url}/health', timeout=LIMIT_S) as answer:
            status = json.load(answer)['status']
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f'{url} does not answer: {error}'
    return None if status == 'ok' else f'{url} is {status}'


def main(kind='', *arguments):
    kinds = {'node': node, 'http': http}
    if kind not in kinds or len(arguments) > 1:
        return __doc__
    return kinds[kind](*arguments)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
