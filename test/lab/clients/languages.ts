/**
 * Generated clients of the OpenAPI document, and the Python package, each with a program that calls it. Each
 * download has a fixed version and is kept in a cache. Generated code is deleted.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { ROOT } from '../../docs/pages.js';
import { built } from '../../docs/run-program.js';
import type { Answers } from './real-answers.js';

export interface Work {
  /** The document from which clients are generated. */
  readonly document: string;
  /** An empty folder for generated and compiled files. */
  readonly directory: string;
  /** Every set of answers that the program will read, because a compiler may refuse an answer. */
  readonly answers: Readonly<Record<string, Answers>>;
}

export interface Language {
  readonly name: string;
  /** Operations that the generated client cannot call. */
  readonly unable?: readonly string[];
  /** Resolves with the command that runs the program. The address of the server and the path of a file come last. */
  readonly prepare: (work: Work) => Promise<readonly [string, ...string[]]>;
}

const SOURCES = join(ROOT, 'test/lab/clients');
const CACHE = resolve(process.env['TAKEMARK_CLIENTS_CACHE'] || join(tmpdir(), 'takemark-clients'));
const GENERATOR = {
  name: 'openapi-generator-cli-7.23.0.jar',
  url: 'https://repo1.maven.org/maven2/org/openapitools/openapi-generator-cli/7.23.0/openapi-generator-cli-7.23.0.jar',
  sha256: 'cb087e40001e31eb08ef6140dd5de10938dbeb89016a1fe0481eaa25cd569026',
};
/** Excludes the tests and pages of the generated client. */
const CODE_ALONE =
  'apis,models,supportingFiles,apiDocs=false,modelDocs=false,apiTests=false,modelTests=false';

export const LANGUAGES: readonly Language[] = [
  {
    // This project's package is built, type-checked, and installed in an empty environment.
    name: 'package',
    prepare: async ({ directory }) => {
      const requirements = join(SOURCES, 'package/requirements.txt');
      const checker = await cached('package', await readFile(requirements), (target) =>
        environment(target, ['--only-binary', ':all:', '-r', requirements]),
      );
      await built(process.execPath, join(ROOT, 'deploy/libraries/pack-python.mjs'), directory);
      const wheel = (await readdir(directory)).find((name) => name.endsWith('.whl'));
      const installed = join(directory, 'environment');
      await environment(installed, ['--no-index', join(directory, wheel!)]);
      const interpreter = join(installed, 'bin/python');
      const program = join(directory, 'read.py');
      await copyFile(join(SOURCES, 'package/read.py'), program);
      const strict = ['-m', 'mypy', '--strict', '--python-executable', interpreter];
      await built(join(checker, 'bin/python'), ...strict, '--cache-dir', join(directory, 'mypy'), program);
      return [interpreter, program];
    },
  },
  {
    name: 'python',
    prepare: async ({ document, directory }) => {
      const requirements = join(SOURCES, 'python/requirements.txt');
      const python = await cached('python', await readFile(requirements), async (target) => {
        await environment(target, ['--no-deps', '--only-binary', ':all:', '-r', requirements]);
      });
      const interpreter = join(python, 'bin/python');
      const generate = ['-m', 'openapi_python_client', 'generate', '--meta', 'none'];
      const config = join(directory, 'config.json');
      await writeFile(config, JSON.stringify({ post_hooks: [] }));
      const output = join(directory, 'partner');
      await built(interpreter, ...generate, '--config', config, '--path', document, '--output-path', output);
      await copyFile(join(SOURCES, 'python/read.py'), join(directory, 'read.py'));
      return [interpreter, join(directory, 'read.py')];
    },
  },
  {
    name: 'typescript',
    prepare: async ({ document, directory, answers }) => {
      const lock = join(SOURCES, 'typescript/package-lock.json');
      const packages = await cached('typescript', await readFile(lock), async (target) => {
        for (const name of ['package.json', 'package-lock.json'])
          await copyFile(join(SOURCES, 'typescript', name), join(target, name));
        await built('npm', 'ci', '--silent', '--ignore-scripts', '--prefix', target);
      });
      const program = (name: string) => join(packages, 'node_modules', name);
      await built(
        process.execPath,
        program('openapi-typescript/bin/cli.js'),
        document,
        '--output',
        join(directory, 'api.ts'),
      );
      await copyFile(join(SOURCES, 'typescript/read.ts'), join(directory, 'read.ts'));
      await writeFile(join(directory, 'answers.ts'), typedAnswers(answers));
      await writeFile(join(directory, 'package.json'), '{"type":"module"}');
      await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
      const options = '--strict --module nodenext --target es2022 --types node'.split(' ');
      const sources = ['read.ts', 'answers.ts'].map((name) => join(directory, name));
      await built(
        process.execPath,
        program('typescript/bin/tsc'),
        ...options,
        '--outDir',
        join(directory, 'out'),
        ...sources,
      );
      return [process.execPath, join(directory, 'out/read.js')];
    },
  },
  {
    name: 'go',
    prepare: async ({ document, directory }) => {
      const output = join(directory, 'partner');
      await generate('go', document, output, 'packageName=partner,withGoMod=false');
      for (const name of ['go.mod', 'read.go'])
        await copyFile(join(SOURCES, 'go', name), join(directory, name));
      const program = join(directory, 'read');
      await built('go', '-C', directory, 'build', '-o', program, '.');
      return [program];
    },
  },
  {
    name: 'java',
    // The generated client keeps the parts of a form in a HashMap, so the file is not the last part.
    unable: ['postUpload'],
    prepare: async ({ document, directory }) => {
      const pom = join(SOURCES, 'java/pom.xml');
      const jars = await cached('java', await readFile(pom), async (target) => {
        const goal = [
          'dependency:copy-dependencies',
          '-DincludeScope=runtime',
          `-DoutputDirectory=${target}`,
        ];
        await built('mvn', '-q', '-B', '--strict-checksums', '-f', pom, ...goal);
      });
      const output = join(directory, 'partner');
      const packages = 'invokerPackage=partner,apiPackage=partner.api,modelPackage=partner.model';
      // An absent map would be read as an empty one otherwise.
      await generate('java', document, output, `${packages},containerDefaultToNull=true`);
      const classes = join(directory, 'classes');
      const path = [join(jars, '*'), join(output, 'src/main/java')].join(delimiter);
      await built('javac', '-nowarn', '-cp', path, '-d', classes, join(SOURCES, 'java/Read.java'));
      return ['java', '-cp', [classes, join(jars, '*')].join(delimiter), 'Read'];
    },
  },
];

/** Creates a Python environment, and installs packages there. */
async function environment(target: string, packages: readonly string[]): Promise<void> {
  await built('python3', '-m', 'venv', target);
  await built(join(target, 'bin/python'), '-m', 'pip', 'install', '--quiet', ...packages);
}

async function generate(generator: string, document: string, output: string, properties: string) {
  const jar = await generatorJar();
  const options = ['--additional-properties', properties, '--global-property', CODE_ALONE];
  await built('java', '-jar', jar, 'generate', '-g', generator, '-i', document, '-o', output, ...options);
}

/** Returns the path of the generator of Go and Java, which comes from Maven Central. */
async function generatorJar(): Promise<string> {
  const directory = await cached('generator', GENERATOR.sha256, async (target) => {
    const response = await fetch(GENERATOR.url);
    if (!response.ok) throw new Error(`${GENERATOR.url} was answered with ${response.status}`);
    const bytes = Buffer.from(await response.arrayBuffer());
    const digest = createHash('sha256').update(bytes).digest('hex');
    if (digest !== GENERATOR.sha256) throw new Error(`${GENERATOR.url} has the digest ${digest}`);
    await writeFile(join(target, GENERATOR.name), bytes);
  });
  return join(directory, GENERATOR.name);
}

/** Returns a folder of the cache. It is filled once for each version. */
async function cached(
  name: string,
  contents: string | Uint8Array,
  fill: (target: string) => Promise<void>,
): Promise<string> {
  const version = createHash('sha256').update(contents).digest('hex').slice(0, 12);
  const target = join(CACHE, `${name}-${version}`);
  const whole = join(target, '.whole');
  if (existsSync(whole)) return target;
  await rm(target, { recursive: true, force: true });
  await mkdir(target, { recursive: true });
  await fill(target);
  await writeFile(whole, '');
  return target;
}

/**
 * Returns each answer as a constant of its operation's type, so that an answer that a type refuses does not
 * compile.
 */
function typedAnswers(answers: Work['answers']): string {
  const lines = Object.entries(answers).flatMap(([pass, all]) =>
    [...all].map(([name, { body }]) => {
      const [operation, form] = name.split(' ');
      const type = Number(form) > 0 ? `Refusal<${form}>` : `AnswerOf<'${operation}'>`;
      return `export const ${pass}_${name.replace(' ', '_')}: ${type} = ${JSON.stringify(body)};\n`;
    }),
  );
  return `import type { AnswerOf, Refusal } from './read.js';\n\n${lines.join('')}`;
}
