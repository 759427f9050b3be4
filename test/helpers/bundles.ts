import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { KEY, type Json } from './client.ts'
import type { Hub } from './hub.ts'

const boundary = 'boundary-of-the-test'

/** A multipart body with one file. */
export const multipartOf = (file: Buffer, field = 'mcpbFile', more = ''): Buffer => Buffer.concat([
  Buffer.from(`${more}--${boundary}\r\ncontent-disposition: form-data; name="${field}"; filename="a.mcpb"\r\ncontent-type: application/zip\r\n\r\n`),
  file,
  Buffer.from(`\r\n--${boundary}--\r\n`)
])
export const multipartType = `multipart/form-data; boundary=${boundary}`

/** A field before the file. */
export const fieldOf = (name: string, value = 'value'): string => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`

/** Uploads a bundle, without a socket. */
export const injectBundle = async (app: FastifyInstance, token: string, payload: Buffer): Promise<LightMyRequestResponse> =>
  await app.inject({
    method: 'POST',
    url: '/api/mcpb/upload',
    headers: { authorization: `Bearer ${token}`, 'content-type': multipartType },
    payload
  })

/** Everything below a folder, in order; nothing when it does not exist. */
export const filesBelow = async (folder: string): Promise<string[]> =>
  (await readdir(folder, { recursive: true }).catch(() => [])).sort()

/** Where the gateway with these settings keeps bundles. */
export const bundlesBeside = (settingsPath: string): string => join(dirname(settingsPath), '.tool-hub', 'bundles')

/** A request to the management API that must succeed. */
export async function askHub (hub: Hub, method: string, where: string, body?: object): Promise<Json> {
  const answer = await fetch(`${hub.url}${where}`, {
    method, headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }, body: body && JSON.stringify(body)
  })
  assert.ok(answer.ok, `${method} ${where}: ${answer.status} ${await answer.clone().text()}`)
  return await answer.json() as Json
}

/** Uploads a bundle over the network. */
export async function sendBundle (hub: Hub, file: Buffer): Promise<{ status: number, body: Json }> {
  const answer = await fetch(`${hub.url}/api/mcpb/upload`, {
    method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': multipartType }, body: new Uint8Array(multipartOf(file))
  })
  return { status: answer.status, body: await answer.json() as Json }
}

/** A server of a few lines, in what every system has; its only tool, `greet`, answers so, with the first argument of the command. */
export const shellServer = (greeting: string): string => `#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id": *\\([0-9]*\\).*/\\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\\n' "$id";;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}}\\n' "$id";;
    *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"${greeting} %s"}]}}\\n' "$id" "$1";;
  esac
done
`
