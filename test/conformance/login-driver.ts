/**
 * The client of the `auth/*` scenarios of the conformance suite: a gateway with the scenario's server as its upstream. Opens the address
 * that the server's record shows, as its owner would, and calls its tools. The URL of the server is the last argument.
 */
import assert from 'node:assert/strict'
import { Session, type Json } from '../helpers/client.ts'
import { bearerKey, startHub, until } from '../helpers/hub.ts'

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

const steps: Array<() => unknown> = []
try {
  const url = process.argv.at(-1) ?? ''
  const hub = await startHub({ after: (step) => { steps.push(step) } }, {
    settings: {
      mcpServers: { tested: { type: 'streamable-http', url, oauth: oauthOf() } },
      bearerKeys: [bearerKey()],
      systemConfig: {
        // The address that the suite expects a client's document at.
        ...(scenario === 'auth/basic-cimd' ? { install: { baseUrl: 'https://conformance-test.local' } } : {})
      }
    }
  })
  const record = async (): Promise<{ status: string, error: string | null, oauth?: { authorizationUrl: string } }> => {
    const reply = await fetch(`${hub.url}/api/servers/tested`, { headers: { authorization: `Bearer ${bearerKey().token}` } })
    return (await reply.json() as { data: Awaited<ReturnType<typeof record>> }).data
  }
  const settled = async (): Promise<Awaited<ReturnType<typeof record>>> => {
    await until(async () => (await record()).status !== 'connecting', 10_000, hub.output)
    return await record()
  }
  const login = async (address: string): Promise<void> => {
    // The address may be one that leads nowhere here.
    const home = (url: string): string => { const { pathname, search } = new URL(url, hub.url); return `${hub.url}${pathname}${search}` }
    const begun = await fetch(home(address))
    const cookie = begun.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    const link = /href="([^"]+\/continue\?proof=[^"]+)"/.exec(await begun.text())?.[1] ?? ''
    const sent = await fetch(home(link), { redirect: 'manual', headers: { cookie } })
    const { headers } = await fetch(sent.headers.get('location') ?? '', { redirect: 'manual' })
    const page = await fetch(home(headers.get('location') ?? ''), { headers: { cookie } })
    if (!page.ok) console.error(await page.text())
  }
  for (let logins = 0; ; logins++) {
    const { oauth, status, error } = await settled()
    if (status === 'connected') {
      const session = await Session.open(`${hub.url}/mcp/tested`)
      const answers = []
      for (const name of await session.tools()) answers.push(await session.request('tools/call', { name, arguments: {} }))
      if (answers.length > 0 && answers.every((answer) => answer.result !== undefined)) break
      console.error(JSON.stringify(answers))
    }
    const wanted = oauth ?? (await record()).oauth
    assert.ok(wanted, `${status}: ${error}\n${hub.output()}`)
    assert.ok(logins < maxLogins, `more than ${maxLogins} logins`)
    await login(wanted.authorizationUrl)
    await until(async () => (await record()).oauth?.authorizationUrl !== wanted.authorizationUrl, 10_000, hub.output)
  }
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) await step()
}
process.exit()
