/** Compiles programs as a partner's strict project does, in this process. */
import { join, sep } from 'node:path';
import ts from 'typescript';
import { sized } from '../fixtures/sampling.js';
import { ROOT } from './pages.js';

const STRICT: ts.CompilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  module: ts.ModuleKind.Node20,
  target: ts.ScriptTarget.ES2022,
  types: ['node'],
  typeRoots: [join(ROOT, 'node_modules/@types')],
};

/** Declarations of the language and of Node, read once for all programs. */
const declarations = new Map<string, ts.SourceFile | undefined>();

/** Returns a host that reads declarations below `node_modules` of this project once. */
function sharingHost(options: ts.CompilerOptions): ts.CompilerHost {
  const host = ts.createCompilerHost(options);
  const read = host.getSourceFile.bind(host);
  return {
    ...host,
    getSourceFile(name, ...rest) {
      if (!name.startsWith(join(ROOT, 'node_modules') + sep)) return read(name, ...rest);
      if (!declarations.has(name)) declarations.set(name, read(name, ...rest));
      return declarations.get(name);
    },
  };
}

/**
 * Compiles a file.
 * @param directory the program's own files lie below it; in the gate, declarations of others are not checked
 * @returns what the compiler found wrong
 */
export function compile(
  file: string,
  { directory, ...over }: ts.CompilerOptions & { readonly directory: string },
): string {
  const options = { ...STRICT, ...over };
  const host = sharingHost(options);
  const program = ts.createProgram([file], options, host);
  const own = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(directory + sep));
  if (!own.some(({ fileName }) => fileName === file)) throw new Error(`${file} is not below ${directory}`);
  const checked = sized(program.getSourceFiles(), own);
  const found = [
    ...program.getOptionsDiagnostics(),
    ...program.getGlobalDiagnostics(),
    ...checked.flatMap((source) => [
      ...program.getSyntacticDiagnostics(source),
      ...program.getSemanticDiagnostics(source),
      // By file: emitting all at once checks the declarations of others as well.
      ...(source.isDeclarationFile ? [] : program.emit(source).diagnostics),
    ]),
  ];
  return ts.formatDiagnostics(found, host);
}
