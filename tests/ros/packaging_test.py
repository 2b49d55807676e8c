"""What robots get: units, image and compose file agree with one another and with the program, and the documentation
quotes errors that exist."""

import re
import shlex
import subprocess
import unittest
from pathlib import Path

import yaml
from harness import ROOT, node_binary

PACKAGING = ROOT / 'packaging'
# What a service of the compose file may say; anything else is misspelt.
SERVICE_KEYS = {
    'build', 'cap_drop', 'command', 'devices', 'environment', 'healthcheck', 'image', 'ipc', 'network_mode', 'read_only',
    'restart', 'security_opt', 'stop_grace_period', 'tmpfs', 'ulimits', 'volumes',
}  # fmt: skip


def commands():
    """The subcommands that the program knows."""
    text = subprocess.run([node_binary(), '--help'], check=True, capture_output=True, text=True).stdout
    listed = text.split('Commands:\n', 1)[1].split('\n\n', 1)[0]
    return set(re.findall(r'^  ([a-z-]+)  ', listed, re.MULTILINE))


def instructions(dockerfile):
    """Instructions of the last stage: name to their texts."""
    found = {}
    for line in re.sub(r'\\\n', ' ', dockerfile).splitlines():
        if line.startswith('FROM '):
            found = {}
        if match := re.match(r'([A-Z]+) +(.*)', line):
            found.setdefault(match[1], []).append(match[2])
    return found


class ComposeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.compose = yaml.safe_load((ROOT / 'compose.yaml').read_text())
        cls.card = yaml.safe_load((ROOT / 'compose.card.yaml').read_text())
        cls.image = instructions((ROOT / 'Dockerfile').read_text())

    def test_services_say_what_is_known(self):
        self.assertEqual(set(self.compose['services']), {'node', 'http'})
        self.assertEqual(set(self.card['services']), {'node', 'http'})
        for file in (self.compose, self.card):
            for name, service in file['services'].items():
                self.assertLessEqual(set(service), SERVICE_KEYS, name)

    def test_commands_are_those_of_the_program(self):
        default = yaml.safe_load(self.image['CMD'][0])
        self.assertIn(default[0], commands())
        self.assertNotIn('command', self.compose['services']['node'], 'the node is what the image runs by default')
        self.assertEqual(self.compose['services']['http']['command'][0], 'serve')
        self.assertIn('serve', commands())

    def test_volumes_are_declared_and_meet_the_image(self):
        for service in self.compose['services'].values():
            for volume in service['volumes']:
                source, target = re.sub(r'\$\{[^}]*\}', '/given', volume).split(':')[:2]
                if not source.startswith(('/', '.')):
                    self.assertIn(source, self.compose['volumes'])
                    self.assertIn(target, self.image['VOLUME'][0].split())

    def test_no_service_may_more_than_it_needs(self):
        for service in self.compose['services'].values():
            self.assertEqual(service['cap_drop'], ['ALL'])
            self.assertIn('no-new-privileges:true', service['security_opt'])
            self.assertTrue(service['read_only'])
        self.assertEqual(self.image['USER'], ['gr00t-blackhole'])

    def test_health_checks_are_in_the_image(self):
        copied = self.image['COPY'][0].split()
        folder = copied[-1]
        names = {folder + Path(source).name for source in copied[:-1]}
        in_image = yaml.safe_load(self.image['HEALTHCHECK'][0].split(' CMD ')[1])
        self.assertIn(in_image[0], names)
        self.assertIn(self.compose['services']['http']['healthcheck']['test'][1], names)
        self.assertEqual(yaml.safe_load(self.image['ENTRYPOINT'][0]), ['/usr/bin/gr00t_blackhole'])
        for source in copied[:-1]:
            self.assertTrue((ROOT / source).is_file(), source)

    def test_the_card_is_an_addition(self):
        for service in self.card['services'].values():
            self.assertEqual(service['devices'], ['/dev/tenstorrent'])
            self.assertIn('/dev/hugepages-1G:/dev/hugepages-1G', service['volumes'])


class UnitTest(unittest.TestCase):
    def exec_start(self, name):
        text = (PACKAGING / 'systemd' / name).read_text()
        return shlex.split(re.search(r'^ExecStart=(.*)$', text, re.MULTILINE)[1])

    def test_services_run_what_the_program_knows(self):
        for name, variable in (('gr00t-blackhole', 'NODE_ROS_ARGS'), ('gr00t-blackhole-http', 'SERVE_OPTIONS')):
            program, command, *arguments = self.exec_start(f'{name}.service')
            self.assertEqual(program, '/usr/bin/gr00t_blackhole')
            self.assertIn(command, commands())
            self.assertEqual(arguments[-1], f'${variable}')
            settings = 'node.env' if command == 'node' else 'http.env'
            self.assertIn(f'\n{variable}=', (PACKAGING / 'etc' / settings).read_text())

    def test_the_shipped_parameters_are_parameters(self):
        known = yaml.safe_load((ROOT / 'config/default.yaml').read_text())['/**']['ros__parameters']
        shipped = yaml.safe_load((PACKAGING / 'etc/node.yaml').read_text())['/**']['ros__parameters']
        self.assertLessEqual(set(shipped), set(known))

    def test_variables_of_the_http_service_are_obeyed(self):
        help_text = subprocess.run([node_binary(), 'serve', '--help'], check=True, capture_output=True, text=True).stdout
        text = (PACKAGING / 'etc/http.env').read_text()
        names = set(re.findall(r'^#?([A-Z_0-9]+)=', text, re.MULTILINE)) - {'SERVE_OPTIONS'}
        self.assertEqual(len(names), 5)
        composed = set(yaml.safe_load((ROOT / 'compose.yaml').read_text())['services']['http']['environment'])
        # That one is the hub's, for `weights fetch` in the same container.
        for name in names | composed - {'HF_TOKEN'}:
            self.assertIn(f'[env: {name}', help_text)


class DocumentationTest(unittest.TestCase):
    def test_errors_are_quoted_as_they_are(self):
        sources = [ROOT / 'src', ROOT / 'tt-metal-sys/src']
        files = [path for folder in sources for path in folder.rglob('*.rs')]
        files.extend((ROOT / 'scripts').glob('*.sh'))
        # A text that goes on in the next line, after a backslash, is one text.
        source = '\n'.join(re.sub(r'\\\n\s*', '', path.read_text()) for path in files)
        quoted = re.findall(r'^\| (`.+?`) \|', (ROOT / 'docs/troubleshooting.md').read_text(), re.MULTILINE)
        self.assertGreater(len(quoted), 30)
        for text in quoted:
            for part in text[1:-1].split('…'):
                # Quotes and backticks around what varies belong to neither side.
                part = part.strip("`'")
                if len(part) > 3:
                    self.assertIn(part, source, text)

    def test_links_lead_somewhere(self):
        for page in [ROOT / 'README.md', *(ROOT / 'docs').rglob('*.md')]:
            for link in re.findall(r'\]\(([^)#][^)]*)\)', page.read_text()):
                if '://' not in link:
                    self.assertTrue((page.parent / link.split('#')[0]).exists(), f'{page.name}: {link}')

    def test_the_model_cards_name_the_licence(self):
        for version in ('n15', 'n16', 'n17'):
            text = (ROOT / f'docs/models/{version}.md').read_text()
            self.assertIn('**NVIDIA License**', text)
            self.assertIn('non-commercial' if version != 'n15' else 'not for commercial use', text)


if __name__ == '__main__':
    unittest.main()
