/**
 * The client of the `auth/*` scenarios of the conformance suite: the gateway with the scenario's server as its upstream. Opens the address
 * that the server's record shows, as its owner would, and calls its tools. The URL of the server is the last argument, the gateway's is
 * `TOOL_HUB_URL`. Plain Node runs this file: it starts once a scenario.
 */
import assert from 'node:assert/strict'
import { Session, type Json } from '../helpers/client.ts'
import { until } from '../helpers/hub.ts'
import { Tested } from './gateway.ts'

const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? ''
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}') as Record<string, string | undefined>
/** More logins than this are a loop. */
const maxLogins = 3

/** The `oauth` of the config, from what the scenario tells its client. */
function oauthOf (): Json | undefined {
  const { client_id: clientId, client_secret: clientSecret, private_key_pem: privateKey, signing_algorithm: signingAlgorithm } = context
  if (clientId === undefined) return undefined
  const grantType = scenario.startsWith('auth/client-credentials') ? 'client_credentials' : undefined
  return { clientId, clientSecret, privateKey, signingAlgorithm, grantType }
}

let tested: Tested | undefined
try {
  const server = tested = await Tested.add({ url: process.argv.at(-1), oauth: oauthOf() })
  const login = async (address: string): Promise<void> => {
    // The address may be one that leads nowhere here.
    const home = (url: string): string => { const { pathname, search } = new URL(url, server.hub); return `${server.hub}${pathname}${search}` }
    const begun = await fetch(home(address))
    const cookie = begun.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    const link = /href="([^"]+\/continue\?proof=[^"]+)"/.exec(await begun.text())?.[1] ?? ''
    const sent = await fetch(home(link), { redirect: 'manual', headers: { cookie } })
    const { headers } = await fetch(sent.headers.get('location') ?? '', { redirect: 'manual' })
    const page = await fetch(home(headers.get('location') ?? ''), { headers: { cookie } })
    // What the gateway refused stays refused: there is no other address to wait for.
    assert.ok(page.ok, `The login failed: ${await page.text()}`)
  }
  for (let logins = 0; ; logins++) {
    const { oauth, status, error } = await server.settled()
    if (status === 'connected') {
      const session = await Session.open(server.url)
      const answers = []
      for (const name of await session.tools()) answers.push(await session.request('tools/call', { name, arguments: {} }))
      if (answers.length > 0 && answers.every((answer) => answer.result !== undefined)) break
      console.error(JSON.stringify(answers))
    }
    const wanted = oauth ?? (await server.show()).oauth
    assert.ok(wanted, `${status}: ${error}`)
    assert.ok(logins < maxLogins, `more than ${maxLogins} logins`)
    await login(wanted.authorizationUrl)
    await until(async () => (await server.show()).oauth?.authorizationUrl !== wanted.authorizationUrl, 'no new address')
  }
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  await tested?.remove()
}
process.exit()
