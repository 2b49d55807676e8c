"""The rqt perspective and the PlotJuggler layout: they can be read, and show what there is."""

import ast
import json
import re
import unittest
import xml.etree.ElementTree as ElementTree

import yaml
from diagnostic_msgs.msg import DiagnosticArray
from harness import ROOT
from rosidl_adapter.parser import parse_message_file
from sensor_msgs.msg import Image, JointState
from trajectory_msgs.msg import JointTrajectory

PERSPECTIVE = ROOT / 'config/gr00t_blackhole.perspective'
LAYOUT = ROOT / 'config/plotjuggler.xml'
GR1 = ROOT / 'config/gr1.yaml'

# Topics of a node with the default name, and of the robot, with their types.
TOPICS = {
    '/policy/timing': 'Timing',
    '/policy/debug/image': Image,
    '/policy/joint_trajectory': JointTrajectory,
    '/joint_states': JointState,
    '/diagnostics': DiagnosticArray,
}

STAGES = ['encode_ms', 'vision_ms', 'llm_ms', 'adapter_ms', 'denoise_ms', 'decode_ms']
TIMING = {f'/policy/timing/{field}' for field in [*STAGES, 'predict_ms', 'node_ms', 'latency_ms']}


def numeric_fields(kind):
    """Names of the fields of one number, by the message class or by the file of this package's own message."""
    if isinstance(kind, str):
        fields = parse_message_file('gr00t_blackhole', ROOT / f'msg/{kind}.msg').fields
        return {field.name for field in fields if str(field.type) == 'float64'}
    return {name for name, of in kind.get_fields_and_field_types().items() if of in ('double', 'float')}


def topic_of(curve):
    """The topic that a curve belongs to, and what is behind it."""
    for topic in TOPICS:
        if curve.startswith(topic + '/'):
            return topic, curve[len(topic) + 1 :]
    raise AssertionError(f'{curve} belongs to none of {sorted(TOPICS)}')


class TimingTest(unittest.TestCase):
    def test_the_message_has_the_fields_of_the_views(self):
        self.assertEqual({f'/policy/timing/{name}' for name in numeric_fields('Timing')}, TIMING)

    def test_the_message_is_built_with_the_package(self):
        self.assertIn('  msg/Timing.msg\n', (ROOT / 'CMakeLists.txt').read_text())


class PerspectiveTest(unittest.TestCase):
    def setUp(self):
        self.manager = json.loads(PERSPECTIVE.read_text())['groups']['pluginmanager']
        self.running = self.value(self.manager['keys']['running-plugins'])

    def value(self, entry):
        """A setting as rqt imports it: a Python literal."""
        self.assertEqual(entry['type'], 'repr')
        return ast.literal_eval(entry['repr'])

    def settings(self, plugin, number):
        group = f'plugin__{plugin.replace("/", "__")}__{number}'
        keys = self.manager['groups'][group]['groups']['plugin']['keys']
        return {name: self.value(entry) for name, entry in keys.items()}

    def test_every_view_is_there(self):
        views = {
            'rqt_plot/Plot',
            'rqt_image_view/ImageView',
            'rqt_robot_monitor/RobotMonitor',
            'rqt_console/Console',
            'rqt_topic/TopicPlugin',
        }
        self.assertEqual(set(self.running), views)

    def test_settings_belong_to_a_running_view(self):
        groups = {
            f'plugin__{plugin.replace("/", "__")}__{number}'
            for plugin, numbers in self.running.items()
            for number in numbers
        }
        self.assertLessEqual(set(self.manager['groups']), groups)

    def test_plots_show_all_timings(self):
        plots = [self.settings('rqt_plot/Plot', number)['topics'] for number in self.running['rqt_plot/Plot']]
        shown = [curve for plot in plots for curve in plot]
        self.assertEqual(len(shown), len(set(shown)))
        self.assertEqual(set(shown), TIMING)

    def test_the_picture_is_what_the_policy_sees(self):
        self.assertIs(TOPICS[self.settings('rqt_image_view/ImageView', 1)['topic']], Image)


class LayoutTest(unittest.TestCase):
    def setUp(self):
        self.root = ElementTree.parse(LAYOUT).getroot()
        self.curves = [curve.get('name') for curve in self.root.iter('curve')]

    def test_it_has_the_parts_of_a_layout(self):
        self.assertEqual(self.root.tag, 'root')
        self.assertEqual(self.root.find('tabbed_widget').get('parent'), 'main_window')
        for splitter in self.root.iter('DockSplitter'):
            areas = len(splitter.findall('DockArea'))
            self.assertEqual(int(splitter.get('count')), areas)
            sizes = [float(size) for size in splitter.get('sizes').split(';')]
            self.assertEqual(len(sizes), areas)
            self.assertAlmostEqual(sum(sizes), 1.0, places=3)

    def test_the_subscriber_takes_the_topics_of_the_curves(self):
        streamer = self.root.find('previouslyLoaded_Streamer').get('name')
        [plugin] = [plugin for plugin in self.root.iter('plugin') if plugin.get('ID') == streamer]
        selected = plugin.find('selected_topics').get('value').split(';')
        self.assertEqual(set(selected), {topic_of(curve)[0] for curve in self.curves})

    def test_every_curve_is_a_field(self):
        self.assertEqual(len(self.curves), len(set(self.curves)))
        parameters = yaml.safe_load(GR1.read_text())['/**']['ros__parameters']
        joints = [joint for group in parameters['state'].values() for joint in group['joints']]
        point_type = JointTrajectory.get_fields_and_field_types()['points']
        self.assertEqual(point_type, 'sequence<trajectory_msgs/JointTrajectoryPoint>')
        for curve in self.curves:
            topic, rest = topic_of(curve)
            if topic == '/policy/timing':
                self.assertIn(rest, numeric_fields('Timing'))
            elif topic == '/joint_states':
                joint, field = rest.split('/')
                self.assertIn(joint, joints)
                self.assertIn(field, JointState.get_fields_and_field_types())
            else:
                match = re.fullmatch(r'points\[0\]/positions\[(\d+)\]', rest)
                self.assertIsNotNone(match, curve)
                self.assertLess(int(match[1]), len(joints))
        self.assertLessEqual(TIMING, set(self.curves))


if __name__ == '__main__':
    unittest.main()
