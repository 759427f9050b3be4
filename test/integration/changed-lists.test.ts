// Changes of what a remote server lists, for clients that have connections of their own to it since they can be asked.
import assert from 'node:assert/strict'
import { test, type Test } from 'tap'
import { startLegacyBridge } from '../fakes/legacy-bridge.ts'
import { startModern } from '../fakes/modern-server.ts'
import { connected, Session, settings, sleep } from '../helpers/client.ts'
import { startHub, until } from '../helpers/hub.ts'
import { modernAgent } from '../helpers/modern-client.ts'

const timeout = 120_000

/** A server, and what changes its tools. */
interface Changing { readonly url: string, readonly change: () => void, readonly last: () => string }

async function legacy (t: Test): Promise<Changing> {
  const { url, world } = await startLegacyBridge(t)
  const change = (): void => {
    world.tools.push(`grown-${world.tools.length}`)
    for (const server of world.servers) server.sendToolListChanged().catch(() => {})
  }
  return { url, change, last: () => world.tools.at(-1) ?? '' }
}

async function modern (t: Test): Promise<Changing> {
  const { url, world } = await startModern(t, { modern: true })
  const change = (): void => {
    const [first] = world.tools
    if (first) world.tools.push({ ...first, name: `grown-${world.tools.length}` })
    world.changed()
  }
  return { url, change, last: () => world.tools.at(-1)?.name ?? '' }
}

for (const [era, start] of Object.entries({ legacy, modern })) {
  void test(`every change of a ${era} server reaches clients that can be asked`, { timeout }, async (t) => {
    const { url, change, last } = await start(t)
    const hub = await startHub(t, { settings: settings({ s: { type: 'streamable-http', url } }) })
    await connected(hub, 1)
    const route = `${hub.url}/mcp/s`
    for (let round = 0; round < 4; round++) {
      const agents = await Promise.all([0, 1].map(async () => (await modernAgent(t, route)).client))
      const heard = agents.map(() => 0)
      const listening = await Promise.all(agents.map(async (agent, n) => {
        agent.setNotificationHandler('notifications/tools/list_changed', () => { heard[n] = (heard[n] ?? 0) + 1 })
        return await agent.listen({ toolsListChanged: true, resourceSubscriptions: ['test://one', 'r://one'] })
      }))
      const session = await Session.open(route, { capabilities: { elicitation: {}, sampling: {} } })
      // Several calls at once open several connections of one owner.
      if (round % 2 === 1) {
        await Promise.all(agents.flatMap((agent) => [0, 1].map(async () => await agent.callTool({ name: 'cancelled', arguments: {} }))))
      }
      for (let changes = 1; changes <= 5; changes++) {
        change()
        await until(() => heard.every((count) => count >= changes), 5_000, `round ${round}: ${changes} changes, heard ${heard.join()}`)
        await sleep(300)
      }
      for (const agent of agents) {
        assert.ok((await agent.listTools()).tools.some(({ name }) => name === last()), `round ${round}: not listed to a modern client`)
      }
      assert.ok((await session.tools()).includes(last()), `round ${round}: not listed to a session`)
      for (const each of listening) await each.close()
      await session.end()
    }
  })
}
