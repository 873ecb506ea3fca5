import type { OperationObject } from '../../../contract/openapi.js';

/** What a program does with the body of a response. */
type Result = 'text' | 'file' | 'location';

/** One call of the document, with the values of its examples. */
export interface SampleCall {
  readonly method: string;
  /** The path with its query. */
  readonly target: string;
  readonly needsKey: boolean;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body?:
    | { readonly kind: 'json'; readonly value: unknown }
    | { readonly kind: 'form'; readonly fields: readonly (readonly [name: string, value: string])[] };
  readonly result: Result;
}

/** A program that makes one call of the document. The member names are those of `x-codeSamples`. */
export interface CodeSample {
  readonly lang: string;
  readonly label: string;
  readonly source: string;
}

/**
 * Returns the call of an operation with its example values. Optional parameters are omitted.
 * @param slotFields the example of the signed fields of a slot
 */
export function sampleCall(
  method: string,
  path: string,
  { parameters = [], requestBody, responses, security }: OperationObject,
  slotFields: Readonly<Record<string, string>>,
): SampleCall {
  const required = parameters.filter(({ required }) => required);
  const placed = (place: string) =>
    required
      .filter((parameter) => parameter.in === place)
      .map(({ name, example }): [string, string] => {
        if (example === undefined) throw new Error(`${method} ${path}: ${name} has no example`);
        return [name, String(example)];
      });
  const address = placed('path').reduce(
    (address, [name, value]) => address.replace(`{${name}}`, encodeURIComponent(value)),
    path,
  );
  const query = new URLSearchParams(placed('query')).toString();
  const { content = {} } = Object.entries(responses).find(([status]) => Number(status) < 300)?.[1] ?? {};
  const mediaTypes = Object.keys(content);
  const body = bodyOf(requestBody, slotFields);
  return {
    method,
    target: query === '' ? address : `${address}?${query}`,
    needsKey: security.length > 0,
    headers: placed('header'),
    ...(body !== undefined && { body }),
    result:
      mediaTypes.length === 0
        ? 'location'
        : mediaTypes.some((type) => type === 'application/octet-stream')
          ? 'file'
          : 'text',
  };
}

function bodyOf(
  requestBody: OperationObject['requestBody'],
  slotFields: Readonly<Record<string, string>>,
): SampleCall['body'] {
  const json = requestBody?.content['application/json'];
  if (json !== undefined) return { kind: 'json', value: Object.values(json.examples ?? {})[0]!.value };
  const form = requestBody?.content['multipart/form-data'];
  if (form === undefined) return undefined;
  // The form of a slot requires the fields of the slot. A form with a key has only files.
  const required = (form.schema?.['required'] ?? []) as readonly string[];
  return {
    kind: 'form',
    fields: Object.entries(slotFields).filter(([name]) => required.includes(name)),
  };
}

/** Returns a whole program for a call, in each language. */
export function samplesOf(call: SampleCall): readonly CodeSample[] {
  return [
    { lang: 'shell', label: 'curl', source: curl(call) },
    { lang: 'python', label: 'Python', source: python(call) },
    { lang: 'typescript', label: 'TypeScript', source: typescript(call) },
    { lang: 'go', label: 'Go', source: go(call) },
    { lang: 'java', label: 'Java', source: java(call) },
  ];
}

function curl({ method, target, needsKey, headers, body, result }: SampleCall): string {
  const options = [
    ...(needsKey ? ['--header @-'] : []),
    ...headers.map(([name, value]) => `--header ${shellText(`${name}: ${value}`)}`),
    ...(body?.kind === 'json' ? [`--json ${shellText(JSON.stringify(body.value))}`] : []),
    ...(body?.kind === 'form'
      ? [
          ...body.fields.map(([name, value]) => `--form-string ${shellText(`${name}=${value}`)}`),
          '--form file=@song.wav',
        ]
      : []),
    ...(result === 'file' ? ['--output response.bin'] : []),
    ...(result === 'location' ? [`--write-out '%{redirect_url}\\n'`] : []),
  ];
  const lines = [
    `curl --silent --show-error --fail-with-body --request ${method}`,
    ...options,
    `"$TAKEMARK_URL"${shellText(target)}`,
  ];
  // The key is not an argument, because every user of the machine can read arguments.
  const key = needsKey ? `printf 'x-api-key: %s' "$TAKEMARK_API_KEY" |\n  ` : '';
  return `${key}${lines.join(' \\\n    ')}\n`;
}

function python({ method, target, needsKey, headers, body, result }: SampleCall): string {
  const all = [
    ...(needsKey ? [`"x-api-key": os.environ["TAKEMARK_API_KEY"].strip()`] : []),
    ...headers.map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`),
  ];
  const argumentsOf = [
    `${JSON.stringify(method)},`,
    `os.environ["TAKEMARK_URL"] + ${JSON.stringify(target)},`,
    ...(all.length > 0 ? [`headers={${all.join(', ')}},`] : []),
    ...(body?.kind === 'json' ? [`json=${pythonText(body.value)},`] : []),
    ...(body?.kind === 'form'
      ? [`data=${pythonText(Object.fromEntries(body.fields))},`, 'files={"file": open("song.wav", "rb")},']
      : []),
    'allow_redirects=False,',
    'timeout=60,',
  ];
  const output = {
    text: 'print(response.text)',
    file: 'with open("response.bin", "wb") as file:\n    file.write(response.content)',
    location: 'print(response.headers["Location"])',
  }[result];
  return `import os

import requests

response = requests.request(
    ${argumentsOf.join('\n    ')}
)
if not response.ok:
    raise SystemExit(f"{response.status_code} {response.text}")
${output}
`;
}

function typescript({ method, target, needsKey, headers, body, result }: SampleCall): string {
  const all = [
    ...(needsKey ? [`'x-api-key': process.env.TAKEMARK_API_KEY!`] : []),
    ...(body?.kind === 'json' ? [`'content-type': 'application/json'`] : []),
    ...headers.map(([name, value]) => `${scriptText(name)}: ${scriptText(value)}`),
  ];
  const imports = [
    ...(body?.kind === 'form' ? [`import { openAsBlob } from 'node:fs';`] : []),
    ...(result === 'file' ? [`import { writeFile } from 'node:fs/promises';`] : []),
  ];
  const form =
    body?.kind === 'form'
      ? [
          'const form = new FormData();',
          ...body.fields.map(([name, value]) => `form.set(${scriptText(name)}, ${scriptText(value)});`),
          `form.set('file', await openAsBlob('song.wav'), 'song.wav');`,
          '',
        ]
      : [];
  const options = [
    `method: ${scriptText(method)},`,
    ...(all.length > 0 ? [`headers: { ${all.join(', ')} },`] : []),
    ...(body?.kind === 'json' ? [`body: JSON.stringify(${JSON.stringify(body.value)}),`] : []),
    ...(body?.kind === 'form' ? ['body: form,'] : []),
    `redirect: 'manual',`,
  ];
  const output = {
    text: 'console.log(await response.text());',
    file: `await writeFile('response.bin', new Uint8Array(await response.arrayBuffer()));`,
    location: `console.log(response.headers.get('location'));`,
  }[result];
  return [
    ...imports,
    ...(imports.length > 0 ? [''] : []),
    ...form,
    `const response = await fetch(process.env.TAKEMARK_URL + ${scriptText(target)}, {`,
    ...options.map((line) => `  ${line}`),
    '});',
    `if (response.status >= 400) throw new Error(response.status + ' ' + (await response.text()));`,
    output,
    'export {};',
    '',
  ].join('\n');
}

function go({ method, target, needsKey, headers, body, result }: SampleCall): string {
  const imports = ['io', 'log', 'net/http', 'os', 'time'];
  const before: string[] = [];
  let reader = 'nil';
  const set = [
    ...(needsKey ? ['request.Header.Set("x-api-key", os.Getenv("TAKEMARK_API_KEY"))'] : []),
    ...headers.map(
      ([name, value]) => `request.Header.Set(${JSON.stringify(name)}, ${JSON.stringify(value)})`,
    ),
  ];
  if (body?.kind === 'json') {
    imports.push('strings');
    reader = `strings.NewReader(\`${JSON.stringify(body.value)}\`)`;
    set.push('request.Header.Set("content-type", "application/json")');
  }
  if (body?.kind === 'form') {
    imports.push('bytes', 'mime/multipart');
    reader = '&body';
    before.push(
      'var body bytes.Buffer',
      'form := multipart.NewWriter(&body)',
      ...body.fields.map(
        ([name, value]) => `form.WriteField(${JSON.stringify(name)}, ${JSON.stringify(value)})`,
      ),
      'part, err := form.CreateFormFile("file", "song.wav")',
      'check(err)',
      'audio, err := os.Open("song.wav")',
      'check(err)',
      'defer audio.Close()',
      '_, err = io.Copy(part, audio)',
      'check(err)',
      'check(form.Close())',
    );
    set.push('request.Header.Set("content-type", form.FormDataContentType())');
  }
  const output: readonly string[] = {
    text: ['_, err = io.Copy(os.Stdout, response.Body)', 'check(err)'],
    file: [
      'file, err := os.Create("response.bin")',
      'check(err)',
      '_, err = io.Copy(file, response.Body)',
      'check(err)',
      'check(file.Close())',
    ],
    location: ['fmt.Println(response.Header.Get("Location"))'],
  }[result];
  if (result === 'location') imports.push('fmt');
  const main = [
    ...before,
    `request, err := http.NewRequest(${JSON.stringify(method)}, os.Getenv("TAKEMARK_URL")+${JSON.stringify(target)}, ${reader})`,
    'check(err)',
    ...set,
    'stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }',
    'client := &http.Client{Timeout: time.Minute, CheckRedirect: stay}',
    'response, err := client.Do(request)',
    'check(err)',
    'defer response.Body.Close()',
    'if response.StatusCode >= 400 {',
    '\tmessage, _ := io.ReadAll(io.LimitReader(response.Body, 4096))',
    '\tlog.Fatal(response.Status, " ", string(message))',
    '}',
    ...output,
  ];
  return `package main

import (
${[...new Set(imports)]
  .sort()
  .map((name) => `\t"${name}"`)
  .join('\n')}
)

func main() {
${main.map((line) => `\t${line}`).join('\n')}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
`;
}

function java({ method, target, needsKey, headers, body, result }: SampleCall): string {
  const set = [
    ...(needsKey ? ['.header("x-api-key", System.getenv("TAKEMARK_API_KEY").strip())'] : []),
    ...headers.map(([name, value]) => `.header(${JSON.stringify(name)}, ${JSON.stringify(value)})`),
  ];
  const before: string[] = [];
  let publisher = 'BodyPublishers.noBody()';
  if (body?.kind === 'json') {
    set.push('.header("content-type", "application/json")');
    publisher = `BodyPublishers.ofString(${JSON.stringify(JSON.stringify(body.value))})`;
  }
  if (body?.kind === 'form') {
    set.push('.header("content-type", "multipart/form-data; boundary=" + boundary)');
    publisher = 'form';
    before.push(
      'var boundary = java.util.UUID.randomUUID().toString();',
      'var part = "--" + boundary + "\\r\\nContent-Disposition: form-data; name=";',
      'var form = BodyPublishers.concat(',
      ...body.fields.map(
        ([name, value]) =>
          `    BodyPublishers.ofString(part + ${JSON.stringify(`"${name}"\r\n\r\n${value}\r\n`)}),`,
      ),
      `    BodyPublishers.ofString(part + ${JSON.stringify('"file"; filename="song.wav"\r\n\r\n')}),`,
      '    BodyPublishers.ofFile(Path.of("song.wav")),',
      '    BodyPublishers.ofString("\\r\\n--" + boundary + "--\\r\\n"));',
    );
  }
  const handler =
    result === 'file' ? 'BodyHandlers.ofFile(Path.of("response.bin"))' : 'BodyHandlers.ofString()';
  const output = {
    text: 'System.out.println(response.body());',
    file: 'System.out.println(response.body());',
    location: 'System.out.println(response.headers().firstValue("Location").orElseThrow());',
  }[result];
  const imports = [
    'java.net.URI',
    'java.net.http.HttpClient',
    'java.net.http.HttpRequest',
    'java.net.http.HttpRequest.BodyPublishers',
    'java.net.http.HttpResponse.BodyHandlers',
    ...(body?.kind === 'form' || result === 'file' ? ['java.nio.file.Path'] : []),
  ];
  const main = [
    ...before,
    `var request = HttpRequest.newBuilder(URI.create(System.getenv("TAKEMARK_URL") + ${JSON.stringify(target)}))`,
    ...set.map((line) => `    ${line}`),
    `    .method(${JSON.stringify(method)}, ${publisher})`,
    '    .build();',
    `var response = HttpClient.newHttpClient().send(request, ${handler});`,
    'if (response.statusCode() >= 400) {',
    '    throw new RuntimeException(response.statusCode() + " " + response.body());',
    '}',
    output,
  ];
  return `${imports.map((name) => `import ${name};`).join('\n')}

class Sample {
    public static void main(String[] arguments) throws Exception {
${main.map((line) => `        ${line}`).join('\n')}
    }
}
`;
}

function shellText(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function scriptText(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

/** Returns a JSON value as a Python expression. */
function pythonText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonText).join(', ')}]`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([name, member]) => `${JSON.stringify(name)}: ${pythonText(member)}`)
      .join(', ')}}`;
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return value === null ? 'None' : JSON.stringify(value);
}
