/**
 * Rules for what the project is made of, over the documents that npm writes. Each returns its faults as
 * sentences.
 */

/** Licences that a product under Apache-2.0 may ship with: permissive ones, as SPDX names them. */
export const ACCEPTED_LICENCES = [
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'ISC',
  'MIT',
];

/** A package in the lock file: what npm ci puts into one directory. */
function packagesOf(lock) {
  return Object.entries(lock.packages ?? {}).filter(([path]) => path !== '');
}

/**
 * Development packages with a file that the build copies into `dist/`, so that a user gets it: the library of the page
 * at `/docs`.
 */
const COPIED = ['node_modules/@scalar/fastify-api-reference'];

/** Returns whether a user installs a package, or gets a file of it. */
function isShipped([path, { dev }]) {
  return !dev || COPIED.includes(path);
}

function nameAt(path) {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

/**
 * The lock file pins every byte: each package has a version and a SHA-512 of its archive, comes from a
 * registry and not from a branch or a directory, and runs a script when it is installed only where
 * package.json names it.
 */
export function lockFaults(lock, manifest) {
  const faults = [];
  if (lock.lockfileVersion !== 3) faults.push(`the lock file has version ${lock.lockfileVersion}, not 3`);
  const root = lock.packages?.[''] ?? {};
  for (const kind of ['dependencies', 'devDependencies', 'optionalDependencies']) {
    if (!sameRanges(root[kind], manifest[kind]))
      faults.push(`${kind} of package.json and of the lock file differ: npm install`);
  }
  for (const [path, { version, integrity, resolved, link, hasInstallScript }] of packagesOf(lock)) {
    const name = nameAt(path);
    if (link || version === undefined) faults.push(`${path} is a link, not a package`);
    else if (!/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? '')) faults.push(`${path} has no SHA-512`);
    if (resolved !== undefined && !resolved.startsWith('https://'))
      faults.push(`${path} does not come from a registry over TLS: ${resolved}`);
    if (hasInstallScript && manifest.allowScripts?.[name] === undefined)
      faults.push(
        `${path} runs a script when it is installed, and allowScripts of package.json does not decide on it`,
      );
  }
  for (const name of Object.keys(manifest.allowScripts ?? {})) {
    if (!packagesOf(lock).some(([path, { hasInstallScript }]) => nameAt(path) === name && hasInstallScript))
      faults.push(`allowScripts names ${name}, which has no script to run`);
  }
  return faults;
}

function sameRanges(one = {}, other = {}) {
  const sorted = (ranges) => JSON.stringify(Object.entries(ranges).sort(([a], [b]) => (a < b ? -1 : 1)));
  return sorted(one) === sorted(other);
}

/**
 * Packages that a user installs, with their licences, by name and version. The lock file lacks the licence of
 * packages that state it in the form of before 2014; `licenceOf` reads those from the installed package.
 */
export function licencesOf(lock, licenceOf) {
  const rows = packagesOf(lock)
    .filter(isShipped)
    .map(([path, { version, license }]) => ({
      name: nameAt(path),
      version,
      licence: license ?? licenceOf(path) ?? 'unknown',
    }));
  const byName = new Map(rows.map((row) => [`${row.name}@${row.version}`, row]));
  return [...byName.values()].sort((a, b) => (`${a.name}@${a.version}` < `${b.name}@${b.version}` ? -1 : 1));
}

/** Every licence is an accepted one. Of "A OR B" one is enough, "A AND B" needs both. */
export function licenceFaults(rows) {
  const accepted = (expression) =>
    expression
      .replaceAll(/[()]/g, '')
      .split(' OR ')
      .some((choice) => choice.split(' AND ').every((name) => ACCEPTED_LICENCES.includes(name.trim())));
  return rows
    .filter(({ licence }) => !accepted(licence))
    .map(
      ({ name, version, licence }) =>
        `${name}@${version} has the licence ${licence}, which nobody has accepted`,
    );
}

/** The licence list as a page. */
export function licencePage(rows) {
  const count = new Map();
  for (const { licence } of rows) count.set(licence, (count.get(licence) ?? 0) + 1);
  return [
    '# Licences of what a user installs',
    '',
    'Written by `npm run build:licences`, checked by `npm run check:supply-chain`. Optional packages are in it.',
    '',
    [...count]
      .sort(([, a], [, b]) => b - a)
      .map(([licence, packages]) => `${licence}: ${packages}`)
      .join(', '),
    '',
    '| package | version | licence |',
    '|---|---|---|',
    ...rows.map(({ name, version, licence }) => `| ${name} | ${version} | ${licence} |`),
    '',
  ].join('\n');
}

/**
 * The part of a CycloneDX document that a user installs. npm's own `--omit dev` leaves out what development
 * needs as well, `ms` and two dozen others of this project.
 */
export function shippedPart(bom, lock) {
  const shipped = new Set(
    packagesOf(lock)
      .filter(isShipped)
      .map(([path, { version }]) => `${nameAt(path)}@${version}`),
  );
  const root = bom.metadata.component['bom-ref'];
  return {
    ...bom,
    components: bom.components.filter((component) => shipped.has(component['bom-ref'])),
    dependencies: bom.dependencies
      .filter(({ ref }) => ref === root || shipped.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((name) => shipped.has(name)) })),
  };
}

/**
 * A CycloneDX document (ECMA-424) names every package of the lock file that a user installs, with its digest.
 */
export function bomFaults(bom, lock) {
  const faults = [];
  if (bom.bomFormat !== 'CycloneDX' || !/^1\.[4-9]$/.test(bom.specVersion))
    faults.push('the bill of materials is not CycloneDX 1.4 to 1.9');
  const listed = new Map((bom.components ?? []).map((component) => [component['bom-ref'], component]));
  for (const [path, { version }] of packagesOf(lock).filter(isShipped)) {
    const reference = `${nameAt(path)}@${version}`;
    const component = listed.get(reference);
    if (component === undefined) faults.push(`${reference} is not in the bill of materials`);
    else if (!component.hashes?.some(({ alg }) => alg === 'SHA-512') || component.purl === undefined)
      faults.push(`${reference} stands there without digest or address`);
  }
  return faults;
}
