/**
 * Type-checks each building of `src/` alone: the compiler sees its files, the buildings and libraries that it states
 * in `imports.config.cjs`, and Node. So a building cannot depend on a declaration elsewhere without an import.
 * Arguments are names of buildings. Without them, it checks all. With `--plant`, no building states another one, so
 * that the check must fail.
 */

import { createRequire } from 'node:module';
import ts from 'typescript';

const { buildings, libraries } = createRequire(import.meta.url)('./imports.config.cjs');
const named = process.argv.slice(2).filter((word) => word !== '--plant');
const isPlanted = process.argv.includes('--plant');
const root = process.cwd();
const { config } = ts.readConfigFile('tsconfig.json', ts.sys.readFile);
const { options } = ts.convertCompilerOptionsFromJson(
  {
    ...config.compilerOptions,
    noEmit: true,
    incremental: false,
    declaration: false,
    tsBuildInfoFile: undefined,
  },
  root,
);

const formatHost = {
  getCanonicalFileName: (name) => name,
  getCurrentDirectory: () => root,
  getNewLine: () => '\n',
};

/** Parsed files by path, for all programs: declarations of Node and of the language are most of the work. */
const parsed = new Map();

let failed = 0;
for (const building of named.length > 0 ? named : Object.keys(buildings)) {
  const startedAt = process.cpuUsage();
  const errors = errorsOf(building);
  console.log(`${building}: ${errors.length} errors, ${seconds(process.cpuUsage(startedAt))} s`);
  for (const error of errors) console.log(error);
  failed += errors.length;
}
process.exit(failed === 0 ? 0 : 1);

function seconds({ user, system }) {
  return ((user + system) / 1e6).toFixed(1);
}

/** Returns the errors of a building, each as one text. */
function errorsOf(building) {
  const folders = isPlanted ? [building] : [building, ...buildings[building]];
  const hidden = hiddenFrom(folders);
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, directoryExists, getSourceFile } = host;
  host.getSourceFile = (path, ...rest) => {
    if (!parsed.has(path)) parsed.set(path, getSourceFile(path, ...rest));
    return parsed.get(path);
  };
  host.fileExists = (path) => !hidden(path) && fileExists(path);
  host.readFile = (path) => (hidden(path) ? undefined : readFile(path));
  host.directoryExists = (path) => !hidden(`${path}/`) && directoryExists(path);
  const files = ts.sys.readDirectory(`${root}/src/${building}`, ['.ts', '.cts']);
  if (files.length === 0) return [`src/${building} has no files`];
  const program = ts.createProgram({ rootNames: files, options, host });
  const own = program
    .getSourceFiles()
    .filter(({ fileName }) => fileName.startsWith(`${root}/src/${building}/`));
  const diagnostics = [
    ...program.getOptionsDiagnostics(),
    ...program.getGlobalDiagnostics(),
    ...own.flatMap((file) => [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
    ]),
  ];
  return diagnostics.map((diagnostic) => ts.formatDiagnostic(diagnostic, formatHost).trim());
}

/** Returns a function that recognises the paths that a program of some buildings must not read. */
function hiddenFrom(folders) {
  const others = Object.keys(buildings).filter((name) => !folders.includes(name));
  const unstated = Object.entries(libraries)
    .filter(([, homes]) => !homes.some((home) => folders.includes(home.split('/')[0])))
    .map(([name]) => name);
  const places = [
    ...[...others.map((name) => `src/${name}`), 'test', 'bench', 'dist'],
    ...unstated.flatMap((name) => [`node_modules/${name}`, `node_modules/@types/${name}`]),
  ].map((place) => `${root}/${place}/`);
  return (path) => places.some((place) => path.startsWith(place));
}
