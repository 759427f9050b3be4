// A user who works while somebody else attacks the gateway, as a process of its own, so that neither slows the other's measuring: a small
// call every 20 ms and a list every 500 ms, through one session. Its server is in this process as well. Told what to do by IPC.
import { performance } from 'node:perf_hooks'
import type { Cleanup } from '../helpers/hub.ts'
import { Session, type Json } from '../helpers/client.ts'
import { startUpstream, tool } from './fault-http.ts'

/** What was seen in one phase. Times in ms, from when a request was due. */
export interface Seen { readonly calls: number[], readonly lists: number[], readonly errors: string[] }

export type Order = { readonly open: string, readonly key: string } | { readonly measure: number }
export type Report = { readonly server: Json } | { readonly opened: true } | { readonly seen: Seen }

const callEvery = 20
const listEvery = 500

async function measure (session: Session, time: number): Promise<Seen> {
  const seen: Seen = { calls: [], lists: [], errors: [] }
  const running: Array<Promise<void>> = []
  const run = async (due: number, times: number[], work: () => Promise<unknown>): Promise<void> => {
    try {
      await work()
      times.push(performance.now() - due)
    } catch (error) {
      seen.errors.push(error instanceof Error ? error.message.slice(0, 300) : String(error))
    }
  }
  const begin = performance.now()
  for (let n = 0; n * callEvery < time; n++) {
    // By a plan: a slow answer does not delay what comes next, or the slow ones would be counted once only.
    const due = begin + n * callEvery
    const wait = due - performance.now()
    if (wait > 0) await new Promise((resolve) => { setTimeout(resolve, wait) })
    running.push(run(Math.max(due, performance.now() - callEvery), seen.calls, async () => { await session.call('mine-echo', { message: 'hi' }) }))
    if (n * callEvery % listEvery === 0) running.push(run(due, seen.lists, async () => { await session.post(list) }))
  }
  await Promise.all(running)
  return seen
}

const list = { jsonrpc: '2.0', id: 'list', method: 'tools/list' }

const cleanup: Cleanup = { after: () => {} }
const report = (message: Report): void => { process.send?.(message) }

const upstream = await startUpstream(cleanup, { tools: [tool('echo')] })
let session: Session | undefined
process.on('message', (order: Order) => {
  void (async () => {
    if ('open' in order) {
      session = await Session.open(order.open, { key: order.key })
      await measure(session, 500)
      report({ opened: true })
    } else if (session) report({ seen: await measure(session, order.measure) })
  })()
})
process.on('disconnect', () => { process.exit() })
report({ server: { url: upstream.url, visibility: 'public' } })
