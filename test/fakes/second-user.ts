// A user who works while somebody else attacks the gateway, as a process of its own, so that neither slows the other's measuring: a small
// call every 20 ms (`calls`), or a list every 500 ms (`lists`), which may be of megabytes: reading those would keep a process from its
// calls. Each in a session of its own. Its server is in this process as well. Told what to do by IPC.
import { Agent, request, type IncomingMessage } from 'node:http'
import { performance } from 'node:perf_hooks'
import type { Cleanup } from '../helpers/hub.ts'
import { Session, type Json } from '../helpers/client.ts'
import { startUpstream, tool } from './fault-http.ts'

/** What was seen in one phase. Times in ms, from when a request was due. */
export interface Seen { readonly calls: number[], readonly lists: number[], readonly errors: string[] }

export type Order = { readonly open: string, readonly key: string } | { readonly measure: number }
export type Report = { readonly server: Json } | { readonly opened: true } | { readonly seen: Seen }

const does = process.argv[2] === 'lists' ? 'lists' : 'calls'
/** In ms. */
const every = does === 'lists' ? 500 : 20

const agent = new Agent({ keepAlive: true })

/**
 * One request of a session, at the least cost for this process: what it measures is the gateway. Of an answer that is larger than a call's,
 * only the beginning is looked at.
 */
async function post ({ url, headers }: Session, key: string, message: object): Promise<void> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(url, {
      method: 'POST',
      agent,
      headers: {
        ...headers,
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream'
      }
    }, resolve)
    sent.on('error', reject).end(JSON.stringify(message))
  })
  let begun = ''
  for await (const chunk of answer) if (begun.length < 4_096) begun += String(chunk).slice(0, 4_096)
  if (answer.statusCode !== 200 || !begun.includes('"result":{')) throw new Error(`HTTP ${answer.statusCode} ${begun.slice(0, 300)}`)
}

async function measure (session: Session, key: string, time: number): Promise<Seen> {
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
  for (let n = 0; n * every < time; n++) {
    // By a plan: a slow answer does not delay what comes next, or the slow ones would be counted once only.
    const due = begin + n * every
    const wait = due - performance.now()
    if (wait > 0) await new Promise((resolve) => { setTimeout(resolve, wait) })
    const message = does === 'lists' ? list(n) : call(n)
    running.push(run(Math.max(due, performance.now() - every), seen[does], async () => { await post(session, key, message) }))
  }
  await Promise.all(running)
  return seen
}

// Ids of their own: under attack, a call may be sent before the one before it was answered.
const call = (n: number): object =>
  ({ jsonrpc: '2.0', id: `call ${n}`, method: 'tools/call', params: { name: 'mine-echo', arguments: { message: 'hi' } } })
const list = (n: number): object => ({ jsonrpc: '2.0', id: `list ${n}`, method: 'tools/list' })

const cleanup: Cleanup = { after: () => {} }
const report = (message: Report): void => { process.send?.(message) }

const upstream = await startUpstream(cleanup, { tools: [tool('echo')] })
let session: Session | undefined
let key = ''
process.on('message', (order: Order) => {
  void (async () => {
    if ('open' in order) {
      key = order.key
      session = await Session.open(order.open, { key })
      await measure(session, key, 500)
      report({ opened: true })
    } else if (session) report({ seen: await measure(session, key, order.measure) })
  })()
})
process.on('disconnect', () => { process.exit() })
report({ server: { url: upstream.url, visibility: 'public' } })
