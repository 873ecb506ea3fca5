/**
 * A first verification in three languages, for the page at `/docs`. A test runs each program exactly as it is
 * here.
 */
export const QUICK_STARTS = [
  {
    title: 'curl and jq',
    lang: 'shell',
    code: String.raw`# Verifies song.wav.
# No proxy sees the key on its way to a service on this machine.
export no_proxy="localhost,127.0.0.1,::1,[::1]${'$'}{no_proxy:+,$no_proxy}"
result=$(printf 'x-api-key: %s' "$TAKEMARK_API_KEY" |
  curl --silent --show-error --fail-with-body --header @- --form file=@song.wav \
    "$TAKEMARK_URL/v1/verifications") || exit 1
printf '%s' "$result" | jq '{verdict, good, status: .decision.status}'
`,
  },
  {
    title: 'TypeScript',
    lang: 'typescript',
    code: `// Verifies song.wav. Node 20 or newer.
import { openAsBlob } from 'node:fs';

const { TAKEMARK_URL: base = '', TAKEMARK_API_KEY: key = '' } = process.env;

const body = new FormData();
body.set('file', await openAsBlob('song.wav'), 'song.wav');
const headers = { 'x-api-key': key };
const answer = await fetch(base + '/v1/verifications', { method: 'POST', body, headers, redirect: 'error' });
if (!answer.ok) throw new Error(answer.status + ' ' + (await answer.text()));
const { verdict, good, decision } = (await answer.json()) as any;
console.log(JSON.stringify({ verdict, good, status: decision.status }));
`,
  },
  {
    title: 'Python',
    lang: 'python',
    code: String.raw`# Verifies song.wav.
import json
import os
import secrets
import urllib.request

base, key = os.environ["TAKEMARK_URL"], os.environ["TAKEMARK_API_KEY"].strip()
# No proxy sees the key over plain HTTP, which is for a service on this machine.
proxies = {scheme: proxy for scheme, proxy in urllib.request.getproxies().items() if scheme == "https"}
opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies))

mark = secrets.token_hex(16)
head = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="song.wav"\r\n\r\n'
with open("song.wav", "rb") as audio:
    form = head.encode() + audio.read() + f"\r\n--{mark}--\r\n".encode()
headers = {"x-api-key": key, "Content-Type": f"multipart/form-data; boundary={mark}"}
with opener.open(urllib.request.Request(f"{base}/v1/verifications", form, headers)) as answer:
    result = json.load(answer)
print(json.dumps({**{name: result[name] for name in ("verdict", "good")}, "status": result["decision"]["status"]}))
`,
  },
] as const;
