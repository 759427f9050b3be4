// A call that something else refuses counts for no quota, wherever quotas are stored.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { tool } from '../fakes/fault-http.ts'
import { managed } from '../fakes/replica.ts'
import { at, connected, Session, settings, text, type Json } from '../helpers/client.ts'
import { until, type Cleanup, type Hub } from '../helpers/hub.ts'
import { quota, upstreamFor } from '../helpers/quotas.ts'

/** @param start starts a gateway with these settings on that store */
export function refusedCalls (store: string, start: (t: Cleanup, given: Json) => Promise<Hub>): void {
  test(`what a policy, a guard, a pin or another quota refuses is given back, on ${store}`, async (t) => {
    const upstream = await upstreamFor(t)
    const given = settings({ up: { url: upstream.url, pin: 'block' } }, {
      quotas: [quota({ calls: 3 }), quota({ id: 'q2', name: 'None', target: { server: 'up', tool: 'fails' }, calls: 1 })],
      policies: [{ id: 'p', name: 'No', when: 'tool.name == "other" && has(args.no)', then: 'deny' }],
      guards: [{ id: 'g', name: 'Mail', enabled: true, on: 'arguments', detect: ['email'], action: 'refuse' }]
    })
    const hub = await start(t, given)
    await connected(hub, 1)
    const session = await Session.open(`${hub.url}/mcp`)
    const call = async (name: string, args: Json = {}): Promise<string> => {
      const { result, error } = await session.request('tools/call', { name: `up-${name}`, arguments: args })
      return error?.message ?? text(result)
    }
    assert.match(await call('fails'), /^five words/)
    const refusals = [
      [async () => await call('fails'), /"None" is used up/],
      [async () => await call('other', { no: 1 }), /"No" denies this call/],
      [async () => await call('say', { to: 'ada@secret-domain.org' }), /"Mail" refuses this/],
      [async () => await call('absent'), /Unknown tool/]
    ] as const
    for (let n = 0; n < 3; n++) for (const [refused, said] of refusals) assert.match(await refused(), said)
    upstream.options.tools = [{ ...tool('say'), description: 'Another one' }, tool('other')]
    await upstream.broadcast('notifications/tools/list_changed')
    // Blocked tools stay listed, and the change is known before the lists that block them are in use.
    await until(async () => !(await session.tools()).includes('up-fails'), 'the lists are not read again')
    assert.match(await call('say'), /has changed since/)
    assert.deepEqual([await call('other'), await call('other')].map((said) => said.trim()), Array(2).fill('five words are said here'))
    assert.match(await call('other'), /"Daily" is used up/)
    await until(async () => at(await managed(hub, 'GET', '/usage?by=server'), 0, 'calls') === 3, 'usage counts what was refused')
  })
}
