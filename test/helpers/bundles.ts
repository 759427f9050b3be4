import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'

const boundary = 'boundary-of-the-test'

/** A multipart body with one file. */
export const multipartOf = (file: Buffer, field = 'mcpbFile', more = ''): Buffer => Buffer.concat([
  Buffer.from(`${more}--${boundary}\r\ncontent-disposition: form-data; name="${field}"; filename="a.mcpb"\r\ncontent-type: application/zip\r\n\r\n`),
  file,
  Buffer.from(`\r\n--${boundary}--\r\n`)
])
export const multipartType = `multipart/form-data; boundary=${boundary}`

/** A field before the file. */
export const fieldOf = (name: string): string => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\nvalue\r\n`

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
