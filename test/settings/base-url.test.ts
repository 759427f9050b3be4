// The public base: one function makes it, and all that tells clients of addresses agrees.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { configuredBaseUrl, withBasePath } from '../../plugins/settings/base-url.ts'
import { appFor } from '../helpers/app.ts'

const well = '/.well-known'

test('the base path is at the end of an address once', async () => {
  for (const [address, basePath, base] of [
    ['https://a.example', '', 'https://a.example'],
    ['https://a.example/', '', 'https://a.example'],
    ['https://a.example/x/', '', 'https://a.example/x'],
    ['https://a.example', '/hub', 'https://a.example/hub'],
    ['https://a.example/', '/hub', 'https://a.example/hub'],
    ['https://a.example/hub', '/hub', 'https://a.example/hub'],
    ['https://a.example/hub//', '/hub', 'https://a.example/hub'],
    ['https://a.example/x/hub', '/hub', 'https://a.example/x/hub'],
    ['https://a.example/x', '/hub', 'https://a.example/x/hub'],
    ['https://a.example/myhub', '/hub', 'https://a.example/myhub/hub'],
    ['https://a.example/HUB', '/hub', 'https://a.example/HUB/hub'],
    ['https://a.example/hub', '/deep/hub', 'https://a.example/hub/deep/hub'],
    ['https://a.example/deep/hub/', '/deep/hub', 'https://a.example/deep/hub'],
    ['HTTP://A.example:80/hub?x#y', '/hub', 'http://a.example/hub'],
    ['http://[::1]:3000/hub', '/hub', 'http://[::1]:3000/hub'],
    ['hub.example.com', '/hub', undefined],
    ['ftp://a.example', '', undefined],
    ['', '/hub', undefined],
    [undefined, '/hub', undefined]
  ] as const) assert.equal(withBasePath(address, basePath), base, `${address} below ${basePath}`)
})

test('BASE_URL counts before install.baseUrl', async () => {
  const system = { install: { baseUrl: 'https://stored.example' } }
  for (const [url, stored, base] of [
    ['https://env.example', system, 'https://env.example/hub'],
    [undefined, system, 'https://stored.example/hub'],
    ['https://env.example/hub', {}, 'https://env.example/hub'],
    [undefined, { install: {} }, undefined],
    [undefined, { install: { baseUrl: 'hub.example.com' } }, undefined]
  ] as const) assert.equal(configuredBaseUrl(stored, { basePath: '/hub', env: { BASE_URL: url } }), base)
})

test('documents, metadata, the callback of logins at servers and the home page agree', async (t) => {
  for (const [baseUrl, BASE_PATH, base] of [
    ['https://a.example', '/hub', 'https://a.example/hub'],
    ['https://a.example/hub', '/hub', 'https://a.example/hub'],
    ['https://a.example/outer/hub/', '/hub/', 'https://a.example/outer/hub'],
    ['https://a.example/outer', '/hub', 'https://a.example/outer/hub'],
    ['https://a.example/outer/', '', 'https://a.example/outer']
  ] as const) {
    const path = BASE_PATH.replace(/\/$/, '')
    for (const way of ['BASE_URL', 'install.baseUrl'] as const) {
      const install = way === 'BASE_URL' ? { baseUrl: 'https://stored.example' } : { baseUrl }
      const app = await appFor(t, { systemConfig: { install, oauthServer: { enabled: true } } }, {
        BASE_PATH, ...way === 'BASE_URL' ? { BASE_URL: baseUrl } : {}
      })
      const ask = async (url: string): Promise<string> => (await app.inject({ url: `${path}${url}`, headers: { host: '127.0.0.1' } })).payload
      const json = async (url: string): Promise<Record<string, unknown>> => JSON.parse(await ask(url)) as Record<string, unknown>
      const { issuer, token_endpoint: token } = await json(`${well}/oauth-authorization-server`)
      const { resource } = await json(`${well}/oauth-protected-resource/mcp`)
      const { servers } = await json('/api/openapi.json')
      const { client_id: id, redirect_uris: callbacks } = await json('/client-metadata.json')
      assert.deepEqual(
        { issuer, token, resource, servers, id, callbacks },
        {
          issuer: base,
          token: `${base}/oauth/token`,
          resource: `${base}/mcp`,
          servers: [{ url: `${base}/api` }],
          id: `${base}/client-metadata.json`,
          callbacks: [`${base}/oauth/callback`]
        },
        `${way} ${baseUrl}, BASE_PATH ${BASE_PATH}`
      )
      assert.ok((await ask('/')).includes(`${base}/mcp`))
    }
  }
})
