// Headers in a config that cannot be sent, and an address of the wrong kind: what is wrong stands in the record, in words.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { startUpstream } from '../fakes/fault-http.ts'
import { managed } from '../fakes/replica.ts'
import { settings } from '../helpers/client.ts'
import { startHub, until } from '../helpers/hub.ts'

test('a server that cannot be talked to says what to change', async (t) => {
  const { url } = await startUpstream(t, {})
  const configs: Record<string, [config: object, error: RegExp]> = {
    spaced: [{ url, headers: { 'b ad': 'x' } }, /^"b ad" in "headers" is not a valid header name$/],
    empty: [{ url, headers: { '': 'x' } }, /^"" in "headers" is not a valid header name$/],
    length: [{ url, headers: { 'Content-Length': '5' } }, /^"content-length" in "headers" concerns the connection, .* remove it$/],
    encoding: [{ url, headers: { 'Transfer-Encoding': 'chunked' } }, /^"transfer-encoding" in "headers" concerns the connection/],
    value: [{ url, headers: { 'X-A': 'a\nb' } }, /^the value of "x-a" in "headers" contains a character that is not allowed in a header$/],
    mask: [
      { url, headers: { 'X-A': '••••abcd' } },
      /^the value of "x-a" in "headers" is a mask, not the secret itself: write its value there$/
    ],
    tls: [{ url: url.replace('http:', 'https:') }, /^127\.0\.0\.1:\d+ does not use TLS: should its address begin with http:\/\/ instead of https:\/\/\?$/]
  }
  const servers = Object.fromEntries(Object.entries(configs).map(([name, [config]]) => [name, config]))
  const hub = await startHub(t, { settings: settings(servers) })
  const errorOf = async (name: string): Promise<unknown> => (await managed(hub, 'GET', `/servers/${name}`)).error
  for (const [name, [, error]] of Object.entries(configs)) {
    await until(async () => typeof await errorOf(name) === 'string', name)
    assert.match(String(await errorOf(name)), error)
  }
})
