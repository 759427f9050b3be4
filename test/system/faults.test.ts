// How a gateway process ends, with all that it started: by a signal, and by kill -9, after which the next start ends what is left.
import assert from 'node:assert/strict'
import { pathToFileURL } from 'node:url'
import { test, type Test } from 'tap'
import { startUpstream, tool } from '../fakes/fault-http.ts'
import { startGates } from '../fakes/gates.ts'
import { failed, listed, Session, settings, text, within } from '../helpers/client.ts'
import { npmServer, path, spawnHub, until, type ProcessHub } from '../helpers/hub.ts'
import { alive, commandOf, descendants, processesOf, stdioFake } from '../helpers/stdio-fake.ts'

const areGone = async (pids: readonly number[]): Promise<void> => {
  await until(() => !pids.some(alive), () => `left: ${pids.filter(alive).map((pid) => `${pid} ${commandOf(pid)}`).join()}`)
}
const isStopping = async (hub: ProcessHub): Promise<void> => { await until(() => hub.output().includes('stopping'), 'it does not stop') }
/** Seconds to sleep for that no other run of this file sleeps for. */
const long = `309.${process.pid}`
const onLinux = { skip: process.platform !== 'linux' && 'Linux only' }

/** A gateway whose servers leave their group, one of them with its input closed; and all processes below it. */
async function startRunaways (t: Test, name: string, ...more: string[]): Promise<{ hub: ProcessHub, pids: number[] }> {
  const script = `setsid sh -c 'trap "" TERM; sleep 308; : ${name}' & exec sleep 308`
  // Ends with its input, which is before anybody can look at what it started.
  const brief = 'setsid sh -c \'trap "" TERM; sleep 308; : brief\' & exec cat > /dev/null'
  const scripts = [script, brief, brief, brief, ...more]
  const hub = await spawnHub(t, {
    settings: settings(Object.fromEntries(scripts.map((each, n) => [`left${n}`, { command: 'sh', args: ['-c', each] }])))
  })
  await until(() => descendants(hub.pid).filter((pid) => commandOf(pid).startsWith('sleep\u0000308')).length === scripts.length + 1)
  const pids = descendants(hub.pid)
  t.after(() => { for (const pid of pids) if (['sleep', 'sh'].some((name) => commandOf(pid).startsWith(`${name}\u0000`))) process.kill(pid, 'SIGKILL') })
  return { hub, pids }
}

/** Starts a gateway without servers over the folder of one that was killed. */
const startAgain = async (t: Test, { folder }: ProcessHub): Promise<ProcessHub> => await spawnHub(t, { folder, settings: settings({}) })

test('kill -9, or a second Ctrl-C', onLinux, async (t) => {
  await t.test('kill -9: the next start ends all that is left, also what left its group', async (t) => {
    const { hub, pids } = await startRunaways(t, 'one')
    process.kill(hub.pid, 'SIGKILL')
    const next = await startAgain(t, hub)
    await areGone(pids)
    await until(() => /ended \d+ processes left over from an earlier gateway/.test(next.output()))
  })

  await t.test('a Ctrl-C for all processes of the terminal leaves ending them to the gateway', async (t) => {
    const { hub, pids } = await startRunaways(t, 'two')
    process.kill(hub.pid, 'SIGINT')
    // Without a further signal: a second one cuts the end short.
    await until(() => hub.child.exitCode !== null)
    assert.equal(hub.child.exitCode, 0, hub.output().slice(-2_000))
    assert.deepEqual(pids.filter(alive).map(commandOf), [])
  })

  for (const count of [1, 12]) {
    await t.test(`kill -9 while servers start, when ${count} of 16 have`, async (t) => {
      const many = Array.from({ length: 16 }, (_, n) => [`s${n}`, { command: 'sleep', args: [long] }] as const)
      const hub = await spawnHub(t, { settings: settings(Object.fromEntries(many)) })
      const sleeps = (): number[] => processesOf(`sleep\u0000${long}`)
      t.after(() => { for (const pid of sleeps()) process.kill(pid, 'SIGKILL') })
      await until(() => sleeps().length >= count)
      process.kill(hub.pid, 'SIGKILL')
      await areGone([hub.pid])
      await startAgain(t, hub)
      await until(() => sleeps().length === 0, 'some are left')
    })
  }

  await t.test('a second Ctrl-C ends groups at once, and the next start what left them', async (t) => {
    const { hub, pids } = await startRunaways(t, 'four', 'trap "" TERM; while :; do sleep 308; done')
    const groups = pids.filter((pid) => commandOf(pid).includes('while :'))
    process.kill(hub.pid, 'SIGINT')
    await isStopping(hub)
    process.kill(hub.pid, 'SIGINT')
    await until(() => hub.child.exitCode !== null)
    await areGone(groups)
    await startAgain(t, hub)
    await areGone(pids)
  })
})

test('SIGTERM: exit 0, calls in flight are answered, and no process of any child tree is left', async (t) => {
  const stubborn = stdioFake(t, { FAULT_STUBBORN: '1' })
  const isolated = stdioFake(t, { FAULT_STUBBORN: '1' }, { isolation: 'session' })
  const upstream = await startUpstream(t, { tools: [tool('hang')], on: ({ method }) => method === 'tools/call' ? 'never' : undefined })
  const gates = await startGates(t)
  const hub = await spawnHub(t, {
    settings: settings({
      stubborn: stubborn.config,
      isolated: isolated.config,
      local: { type: 'stdio', ...npmServer('everything', 'stdio') },
      asleep: { type: 'stdio', command: 'sleep', args: [long] },
      http: { type: 'streamable-http', url: upstream.url }
    }),
    env: { DRAIN_TIMEOUT: '3s', NODE_OPTIONS: `--import=${pathToFileURL(path('test/helpers/patient-exit.mjs')).href}` }
  })
  t.after(() => { for (const pid of processesOf(`sleep\u0000${long}`)) process.kill(pid, 'SIGKILL') })
  await listed(hub, ['stubborn', 'isolated', 'local', 'http'])
  const [one, two] = [await Session.open(`${hub.url}/mcp`), await Session.open(`${hub.url}/mcp`)]
  for (const session of [one, two]) await session.call('isolated-pid')
  const stream = await one.listen()
  const hanging = [
    one.request('tools/call', { name: 'stubborn-hang', arguments: {} }),
    two.request('tools/call', { name: 'http-hang', arguments: {} })
  ]
  await until(() => stubborn.log().some((entry) => entry.event === 'hang') && upstream.count('tools/call') === 1, 'never in flight')
  const finishing = two.request('tools/call', { name: 'stubborn-echo', arguments: { message: 'finished', gate: gates.at('finish') } })
  await gates.reached('finish')
  const logged = [...stubborn.log(), ...isolated.log()].flatMap(({ pid, grandchild = pid }) => [pid, grandchild])
  const pids = [...new Set([...logged, ...descendants(hub.pid)])]
  assert.ok(pids.length >= 8, `children and grandchildren: ${pids.join(' ')}`)

  const exited = hub.stop()
  await isStopping(hub)
  gates.open('finish')
  const answers = await within('the answers to calls in flight', Promise.all(hanging))
  assert.equal(text((await within('a call that could finish', finishing)).result), 'finished')
  assert.equal(await within('the exit', exited), 0, hub.output().slice(-2_000))
  await areGone(pids)
  assert.ok(stream.ended)
  for (const answer of answers) assert.ok(failed(answer))
})
