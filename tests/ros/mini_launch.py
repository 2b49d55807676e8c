"""Evaluates the package's launch files without ROS 2's `launch`, which is not to be had as a wheel.

Stand-ins for the few classes of `launch` and `launch_ros` that the launch files use turn a launch file into the command
lines that it would start. Whatever is not known here raises LaunchError or ImportError, so that a misspelt keyword,
argument or file fails a test. As a program:

    mini_launch.py FILE [NAME:=VALUE ...]      prints each command line as JSON
"""

import importlib.util
import json
import os
import sys
import tempfile
import types
from dataclasses import dataclass, field
from pathlib import Path

import yaml


class LaunchError(Exception):
    """The launch file asks for something that is wrong or not known here."""


@dataclass
class Command:
    """One process that a launch file starts."""

    argv: list
    environment: dict = field(default_factory=dict)


class Context:
    """Values of the launch arguments, those declared, and the processes found so far."""

    def __init__(self, given, scratch):
        self.given = dict(given)
        self.values = {}
        self.descriptions = {}
        # The launch file that has declared each argument.
        self.declared_in = {}
        # The launch file that is evaluated.
        self.file = None
        self.commands = []
        self.scratch = Path(scratch)


def perform(value, context):
    """Text of a substitution, a string, or a list of both."""
    if isinstance(value, (list, tuple)):
        return ''.join(perform(part, context) for part in value)
    if hasattr(value, 'perform'):
        return value.perform(context)
    if not isinstance(value, str):
        raise LaunchError(f'{value!r} is neither text nor a substitution')
    return value


# --- launch ---


class LaunchDescription:
    def __init__(self, entities=()):
        self.entities = list(entities)


class DeclareLaunchArgument:
    def __init__(self, name, *, default_value=None, description='', choices=None):
        self.name = name
        self.default_value = default_value
        self.description = description
        self.choices = choices

    def visit(self, context):
        # A file may declare an argument again that it hands on to a file that it includes.
        if context.declared_in.get(self.name) == context.file:
            raise LaunchError(f'argument {self.name} is declared twice')
        if self.name in context.values:
            value = context.values[self.name]
        elif self.name in context.given:
            value = context.given[self.name]
        elif self.default_value is not None:
            value = perform(self.default_value, context)
        else:
            raise LaunchError(f'argument {self.name} has no value')
        if self.choices is not None and value not in self.choices:
            raise LaunchError(f'argument {self.name} is {value!r}, not one of {", ".join(self.choices)}')
        context.values[self.name] = value
        context.declared_in[self.name] = context.file
        context.descriptions[self.name] = self.description


class OpaqueFunction:
    def __init__(self, *, function, args=(), kwargs=None):
        self.function, self.args, self.kwargs = function, args, kwargs or {}

    def visit(self, context):
        visit_all(self.function(context, *self.args, **self.kwargs) or [], context)


class PythonLaunchDescriptionSource:
    def __init__(self, location):
        self.location = location


class IncludeLaunchDescription:
    """Evaluates another launch file in the same context, so that arguments that are given reach it by themselves."""

    def __init__(self, source, *, launch_arguments=()):
        if not isinstance(source, PythonLaunchDescriptionSource):
            raise LaunchError(f'{source!r} is not a PythonLaunchDescriptionSource')
        self.source, self.launch_arguments = source, list(launch_arguments)

    def visit(self, context):
        path = Path(perform(self.source.location, context))
        if not path.is_file():
            raise LaunchError(f'launch file {path} does not exist')
        handed = {name: perform(value, context) for name, value in self.launch_arguments}
        context.values.update(handed)
        visit_file(path, context)
        unknown = sorted(name for name in handed if context.declared_in.get(name) != path)
        if unknown:
            raise LaunchError(f'arguments that {path.name} does not declare: {", ".join(unknown)}')


class IfCondition:
    def __init__(self, predicate):
        self.predicate = predicate

    def holds(self, context):
        text = perform(self.predicate, context).strip().lower()
        if text not in ('true', '1', 'false', '0'):
            raise LaunchError(f'{text!r} is neither true nor false')
        return text in ('true', '1')


class ExecuteProcess:
    def __init__(self, *, cmd, output='log', condition=None):
        self.cmd, self.condition = cmd, condition
        check_output(output)

    def visit(self, context):
        if self.condition is None or self.condition.holds(context):
            context.commands.append(Command([perform(part, context) for part in self.cmd]))


def check_output(output):
    if output not in ('log', 'screen', 'both'):
        raise LaunchError(f'output {output!r} is not log, screen or both')


class LaunchConfiguration:
    def __init__(self, name, *, default=None):
        self.name, self.default = name, default

    def perform(self, context):
        if self.name in context.values:
            return context.values[self.name]
        if self.default is None:
            raise LaunchError(f'argument {self.name} is used but not declared')
        return perform(self.default, context)


class PathJoinSubstitution:
    def __init__(self, parts):
        self.parts = parts

    def perform(self, context):
        return os.path.join(*(perform(part, context) for part in self.parts))


# --- launch_ros ---


def package_prefix(package):
    """Where `package` is installed, by the ament index."""
    for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep):
        if (Path(prefix) / 'share/ament_index/resource_index/packages' / package).exists():
            return Path(prefix)
    raise LaunchError(f'package {package} is not installed in AMENT_PREFIX_PATH')


class FindPackageShare:
    def __init__(self, package):
        self.package = package

    def perform(self, context):
        package = perform(self.package, context)
        return str(package_prefix(package) / 'share' / package)


class ParameterValue:
    def __init__(self, value, *, value_type):
        # launch_ros converts what a substitution gives, but takes a plain value only as it is.
        if not hasattr(value, 'perform') and type(value) is not value_type:
            raise TypeError(f'{value!r} is neither a substitution nor a {value_type.__name__}')
        self.value, self.value_type = value, value_type

    def evaluate(self, context):
        if not hasattr(self.value, 'perform'):
            return self.value
        text = perform(self.value, context)
        value = text if self.value_type is str else yaml.safe_load(text)
        if self.value_type is float and type(value) is int:
            value = float(value)
        if type(value) is not self.value_type:
            raise LaunchError(f'{text!r} is not a {self.value_type.__name__}')
        return value


class Node:
    def __init__(
        self,
        *,
        package,
        executable,
        name=None,
        namespace=None,
        parameters=(),
        remappings=(),
        arguments=(),
        additional_env=None,
        output='log',
        emulate_tty=False,
        respawn=False,
        condition=None,
    ):
        self.package, self.executable = package, executable
        self.name, self.namespace = name, namespace
        self.parameters, self.remappings = parameters, remappings
        self.arguments = arguments
        self.additional_env = additional_env or {}
        self.condition = condition
        check_output(output)

    def visit(self, context):
        if self.condition is not None and not self.condition.holds(context):
            return
        package = perform(self.package, context)
        program = package_prefix(package) / 'lib' / package / perform(self.executable, context)
        if not os.access(program, os.X_OK):
            raise LaunchError(f'{program} is not an executable file')
        argv = [str(program), *(perform(argument, context) for argument in self.arguments), '--ros-args']
        if self.name:
            argv += ['-r', f'__node:={perform(self.name, context)}']
        if self.namespace:
            argv += ['-r', f'__ns:=/{perform(self.namespace, context).lstrip("/")}']
        for parameters in self.parameters:
            argv += ['--params-file', self.parameter_file(parameters, context)]
        for source, target in self.remappings:
            argv += ['-r', f'{perform(source, context)}:={perform(target, context)}']
        environment = {name: perform(value, context) for name, value in self.additional_env.items()}
        context.commands.append(Command(argv, environment))

    @staticmethod
    def parameter_file(parameters, context):
        """The file itself, or one written from a dictionary, as launch_ros does."""
        if not isinstance(parameters, dict):
            path = Path(perform(parameters, context))
            if not path.is_file():
                raise LaunchError(f'parameter file {path} does not exist')
            return str(path)
        values = {}
        for name, value in parameters.items():
            values[name] = value.evaluate(context) if isinstance(value, ParameterValue) else value
        with tempfile.NamedTemporaryFile('w', dir=context.scratch, suffix='.yaml', delete=False) as file:
            yaml.safe_dump({'/**': {'ros__parameters': values}}, file)
        return file.name


MODULES = {
    'launch': [LaunchDescription],
    'launch.actions': [DeclareLaunchArgument, ExecuteProcess, IncludeLaunchDescription, OpaqueFunction],
    'launch.conditions': [IfCondition],
    'launch.launch_description_sources': [PythonLaunchDescriptionSource],
    'launch.substitutions': [LaunchConfiguration, PathJoinSubstitution],
    'launch_ros': [],
    'launch_ros.actions': [Node],
    'launch_ros.parameter_descriptions': [ParameterValue],
    'launch_ros.substitutions': [FindPackageShare],
}


def visit_all(entities, context):
    for entity in entities:
        entity.visit(context)


def load(path):
    """The launch file as a module, with the stand-ins in place of launch and launch_ros."""
    for name, classes in MODULES.items():
        module = types.ModuleType(name)
        for stand_in in classes:
            setattr(module, stand_in.__name__, stand_in)
        sys.modules[name] = module
    spec = importlib.util.spec_from_file_location('launch_file', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def visit_file(path, context):
    """Evaluates the launch file at `path`."""
    before, context.file = context.file, path
    visit_all(load(path).generate_launch_description().entities, context)
    context.file = before


def evaluate(path, arguments=None, *, scratch):
    """Evaluates the launch file with `arguments` (name to text) and returns the context.

    Parameter files that launch_ros would write go into the folder `scratch`.
    """
    context = Context(arguments or {}, scratch)
    visit_file(Path(path), context)
    unknown = sorted(set(context.given) - set(context.declared_in))
    if unknown:
        raise LaunchError(f'arguments that {Path(path).name} does not declare: {", ".join(unknown)}')
    return context


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    pairs = [text.split(':=', 1) for text in sys.argv[2:]]
    if any(len(pair) != 2 for pair in pairs):
        sys.exit('arguments are NAME:=VALUE')
    try:
        context = evaluate(sys.argv[1], dict(pairs), scratch=tempfile.gettempdir())
    except LaunchError as error:
        sys.exit(f'{sys.argv[1]}: {error}')
    for command in context.commands:
        print(json.dumps({'argv': command.argv, 'environment': command.environment}))


if __name__ == '__main__':
    main()
