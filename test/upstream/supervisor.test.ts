// When attempts to open links begin while a server cannot be reached.
import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { test } from 'tap'
import { UpstreamError } from '../../protocol/errors.ts'
import { NonMcpClient } from '../../protocol/exchange.ts'
import { Circuits } from '../../plugins/upstream/links/circuits.ts'
import { gatewayLinkKey } from '../../plugins/upstream/links/link-key.ts'
import { ChildCounts, SlotPool } from '../../plugins/upstream/links/pool.ts'
import { RequestRunner } from '../../plugins/upstream/links/requests.ts'
import type { Slot } from '../../plugins/upstream/links/slot.ts'
import { ConnectionSupervisor } from '../../plugins/upstream/links/supervisor.ts'
import { mockTimers, turnsOfLoop } from '../helpers/clock.ts'

const client = new NonMcpClient('1', 'ann', 'ann', true, 'ann')

/** A supervisor whose attempts to connect end as `attempt` does, with the slot of a client that is subscribed. */
function supervise (attempt: () => Promise<never>): { slot: Slot, supervisor: ConnectionSupervisor, requests: RequestRunner } {
  const pool = new SlotPool({ isProcess: false, children: new ChildCounts(), idleTimeout: 60_000, server: 'up', base: gatewayLinkKey })
  const slot = pool.take({ key: 'session', affinity: 'session', capabilityClass: '{}' }, client)
  slot.subscriptions.add('mem://1', client)
  const circuits = new Circuits(() => [], () => {})
  const deps = {
    connecting: { transport: { environment: {} } },
    circuits,
    statusChanged: () => {},
    values: { valuesFor: attempt, mask: (text: string) => text }
  } as unknown as ConstructorParameters<typeof ConnectionSupervisor>[3]
  const catalogues = { has: () => true } as unknown as ConstructorParameters<typeof ConnectionSupervisor>[2]
  const supervisor = new ConnectionSupervisor({ url: 'http://127.0.0.1:9/mcp' }, pool, catalogues, deps)
  return { slot, supervisor, requests: new RequestRunner('up', supervisor, circuits) }
}

test('calls during an outage leave one attempt a minute for a subscribed link, not one for each call', async (t) => {
  mockTimers(t, 'Date', 'setTimeout')
  let attempts = 0
  const { slot, supervisor } = supervise(async () => { attempts++; throw new UpstreamError('unreachable', 'it is down') })
  const wait = async (seconds: number, each = (): void => {}): Promise<void> => {
    for (let second = 0; second < seconds; second++) {
      each()
      await turnsOfLoop(3)
      mock.timers.tick(1_000)
    }
    await turnsOfLoop(3)
  }
  await wait(60, () => { supervisor.ensureLink(slot).catch(() => {}) })
  attempts = 0
  await wait(600)
  assert.ok(attempts >= 10 && attempts <= 20, `${attempts} attempts in ten minutes`)
  supervisor.close()
})

test('a call waits for a link that is being opened while its user logs in', async (t) => {
  mockTimers(t, 'Date', 'setTimeout')
  mock.timers.setTime(1_000_000)
  let fail = (): void => {}
  const { slot, supervisor, requests } = supervise(async () =>
    await new Promise((_resolve, reject) => { fail = () => { reject(new UpstreamError('unreachable', 'it is down')) } }))
  slot.circuit.failures = 1
  supervisor.ensureLink(slot).catch(() => {})
  supervisor.retry([slot])
  const waiting = requests.waitForLink(slot)
  mock.timers.tick(1_000)
  fail()
  await assert.rejects(waiting, /it cannot be reached/)
  supervisor.close()
})
