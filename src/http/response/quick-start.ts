/**
 * A first verification in three languages, for the page at `/docs`. A test runs each program exactly as it is
 * here.
 */
export const QUICK_STARTS = [
  {
    id: 'curl',
    title: 'curl and jq',
    code: String.raw`# Creates an upload slot, uploads song.wav and verifies it.
# No proxy sees the key on its way to a service on this machine.
export no_proxy="localhost,127.0.0.1,::1,[::1]${'$'}{no_proxy:+,$no_proxy}"
ask() {
  printf 'x-api-key: %s' "$TAKEMARK_API_KEY" |
    curl --silent --show-error --fail-with-body --header @- --json "$2" "$TAKEMARK_URL/v1/$1"
}
slot=$(ask uploads '{"purpose":"verify"}') || exit 1
upload=$(printf '%s' "$slot" |
  jq -r '.fields | to_entries[] | "form-string = " + ("\(.key)=\(.value)" | @json)' |
  curl --silent --show-error --fail-with-body --config - --form file=@song.wav \
    "$(printf '%s' "$slot" | jq -r .url)") || exit 1
result=$(ask verify "$(printf '%s' "$upload" | jq -c '{uploadId}')") || exit 1
printf '%s' "$result" | jq '{verdict, good, status: .decision.status}'
`,
  },
  {
    id: 'typescript',
    title: 'TypeScript',
    code: `// Creates an upload slot, uploads song.wav and verifies it. Node 20 or newer.
import { openAsBlob } from 'node:fs';

const { TAKEMARK_URL: base = '', TAKEMARK_API_KEY: key = '' } = process.env;

async function post(url: string, body: string | FormData, headers: Record<string, string> = {}): Promise<any> {
  const answer = await fetch(url, { method: 'POST', body, headers, redirect: 'error' });
  if (!answer.ok) throw new Error(answer.status + ' ' + (await answer.text()));
  return answer.json();
}

const ask = (path: string, body: object) =>
  post(base + '/v1/' + path, JSON.stringify(body), { 'x-api-key': key, 'content-type': 'application/json' });

const { url, fields } = await ask('uploads', { purpose: 'verify' });
const form = new FormData();
for (const [name, value] of Object.entries<string>(fields)) form.set(name, value);
form.set('file', await openAsBlob('song.wav'), 'song.wav');
const { uploadId } = await post(url, form);
const { verdict, good, decision } = await ask('verify', { uploadId });
console.log(JSON.stringify({ verdict, good, status: decision.status }));
`,
  },
  {
    id: 'python',
    title: 'Python',
    code: String.raw`# Creates an upload slot, uploads song.wav and verifies it.
import json
import os
import secrets
import urllib.request

base, key = os.environ["TAKEMARK_URL"], os.environ["TAKEMARK_API_KEY"]
# No proxy sees the key over plain HTTP, which is for a service on this machine.
proxies = {scheme: proxy for scheme, proxy in urllib.request.getproxies().items() if scheme == "https"}
opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))


def post(url, body, headers):
    with opener.open(urllib.request.Request(url, body, headers)) as answer:
        return json.load(answer)


def ask(path, body):
    headers = {"x-api-key": key, "Content-Type": "application/json"}
    return post(f"{base}/v1/{path}", json.dumps(body).encode(), headers)


slot = ask("uploads", {"purpose": "verify"})
mark = secrets.token_hex(16)
part = f"--{mark}\r\nContent-Disposition: form-data; name="
fields = "".join(f'{part}"{name}"\r\n\r\n{value}\r\n' for name, value in slot["fields"].items())
head = f'{fields}{part}"file"; filename="song.wav"\r\n\r\n'
with open("song.wav", "rb") as audio:
    form = head.encode() + audio.read() + f"\r\n--{mark}--\r\n".encode()
upload = post(slot["url"], form, {"Content-Type": f"multipart/form-data; boundary={mark}"})
result = ask("verify", {"uploadId": upload["uploadId"]})
print(json.dumps({**{name: result[name] for name in ("verdict", "good")}, "status": result["decision"]["status"]}))
`,
  },
] as const;
