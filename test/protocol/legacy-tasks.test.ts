// The tasks of a legacy server whose clients poll: whose waits end when there are too many.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { NonMcpClient, type Exchange } from '../../protocol/exchange.ts'
import { HeldTaskExchange } from '../../protocol/legacy/held-task.ts'
import { LegacyServerTasks } from '../../protocol/legacy/tasks.ts'

const callOf = (owner: string): Exchange => ({
  view: undefined,
  method: 'tools/call',
  params: {},
  paramsText: '{}',
  headers: {},
  client: new NonMcpClient(owner, owner),
  address: undefined,
  canSuspend: true,
  taskForm: 'extension',
  cancelled: undefined,
  onCancel: () => {},
  notify: () => {},
  ask: async () => await new Promise(() => {}),
  pause: () => {}
})

test('who begins tasks without end ends his own waits, and nobody else\'s', async () => {
  const waits: Array<{ readonly owner: string, readonly exchange: Exchange }> = []
  let begun = 0
  const tasks = new LegacyServerTasks({
    send: async (exchange) => {
      if (exchange.method === 'tools/call') {
        return { kind: 'response', id: null, resultText: `{"task":{"taskId":"${begun++}","status":"working"}}` }
      }
      waits.push({ owner: exchange.client.id, exchange })
      return await new Promise(() => {})
    },
    request: async () => '{}',
    nextToken: () => begun
  })
  const begin = async (owner: string): Promise<void> => {
    const deadlines = { timeout: 1_000, resetTimeoutOnProgress: false, maxTotalTimeout: undefined }
    await tasks.serve(callOf(owner), { changes: { task: '{}' }, deadlines, headers: undefined })
  }
  const open = (owner: string): boolean[] =>
    waits.flatMap((wait) => wait.owner === owner ? [wait.exchange.cancelled === undefined] : [])
  await begin('ann')
  await begin('ann')
  for (let n = 0; n < 250; n++) await begin('eve')
  await begin('bob')
  assert.deepEqual([open('ann'), open('bob')], [[true, true], [true]])
  const eves = open('eve')
  assert.equal(eves.filter(Boolean).length, 197)
  assert.equal(eves.indexOf(true), 53, 'the oldest have ended')
})

test('a question that the server withdrew before it was asked is not open', async () => {
  const task = new HeldTaskExchange(callOf('ann'), '1')
  const signal = AbortSignal.abort('the server knows already')
  const asked =
    task.ask({ method: 'roots/list', params: {}, paramsText: '{}', signal, outlivesRequest: false, progress: () => {} })
  await assert.rejects(asked, { message: 'the server knows already' })
  assert.equal(task.inputRequests, undefined)
})

test('a request that is cancelled before anybody listens tells those who listen later', async () => {
  const task = new HeldTaskExchange(callOf('ann'), '1')
  task.cancel('the client has left')
  const told: string[] = []
  task.onCancel((reason) => { told.push(reason) })
  assert.deepEqual(told, ['the client has left'])
})
