// A stdio MCP server that misbehaves on request. Tools: see below. What it saw goes to the file FAULT_LOG, one JSON
// object a line. FAULT_DIE=1: exits at once. FAULT_STUBBORN=1: outlives SIGTERM and the end of its input, and has a
// grandchild that does, too, and holds its pipes. FAULT_NOISE=1: prints what is no JSON-RPC before its first answer.
// FAULT_MORTAL=1: has resources, and dies of being subscribed to. FAULT_EXTRA=1: lists `mute`, `stubborn` and `crash`, too.
// FAULT_COUNTS=1: counts its tasks from 0.
// FAULT_LIVELY=1: has a resource to subscribe to, tasks and log messages, as the tools `touch`, `work`, `page` and `say` move them.
// What waits does so for a time, or for the gate at a URL (gates.ts) or for a file: the argument `gate`; `ask` has one `before` it asks and one `after`.
import { spawn } from 'node:child_process'
import { appendFileSync, closeSync, existsSync, writeSync } from 'node:fs'
import { get } from 'node:http'

const log = (entry) => {
  if (process.env.FAULT_LOG) appendFileSync(process.env.FAULT_LOG, JSON.stringify({ pid: process.pid, ...entry }) + '\n')
}
const line = (message) => { process.stdout.write(JSON.stringify(message) + '\n') }
const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms) })
const wait = async (gate, ms = 0) => {
  if (gate === undefined) await sleep(ms)
  else if (!gate.startsWith('http')) {
    log({ event: 'gate', file: gate })
    while (!existsSync(gate)) await sleep(5)
  } else await new Promise((resolve) => { get(gate, (response) => { response.resume().on('end', resolve) }).on('error', resolve) })
}
const stayDeaf = () => { for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGPIPE']) process.on(signal, () => {}) }
const stayAlive = () => { setInterval(() => {}, 1_000) }

log({ event: 'start' })
if (process.env.FAULT_DIE) {
  process.stderr.write('cannot read the licence file\n')
  process.exit(3)
}
if (process.env.FAULT_STUBBORN) {
  stayDeaf()
  process.stdout.on('error', () => {})
  stayAlive()
  const script = "for (const s of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(s, () => {}); setInterval(() => {}, 1000)"
  const grandchild = spawn(process.execPath, ['-e', script], { stdio: 'inherit' })
  log({ event: 'grandchild', grandchild: grandchild.pid })
}

const noise = () => {
  process.stdout.write(
    'Loading plugins... done\n\n{"this is": "no JSON-RPC"}\n[]\nnull\n42\n"text"\n{"jsonrpc":"2.0","id":"nobody asked","result":{}}\n{"broken": \n'
  )
  process.stdout.write(Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x0a]))
}

const toolOf = (name, more) => ({ name, description: name, inputSchema: { type: 'object' }, ...more })
const tools = ['echo', 'pid', 'ask', 'hang', 'stderr', 'noise', 'endless', 'deep', 'raw', 'exit', 'grow'].map((name) => toolOf(name))
if (process.env.FAULT_EXTRA) for (const name of ['mute', 'stubborn', 'crash']) tools.push(toolOf(name))
if (process.env.FAULT_LIVELY) {
  for (const name of ['touch', 'work', 'page', 'say']) tools.push(toolOf(name, { execution: { taskSupport: 'optional' } }))
}
const subscribed = new Set()
const tasks = new Map()
const questions = new Map()
const running = new Map()
let asked = 0

const ask = (method, params) => new Promise((resolve) => {
  const id = asked++
  questions.set(id, resolve)
  line({ jsonrpc: '2.0', id, method, params })
})

const questionOf = {
  sampling: (tag) => ['sampling/createMessage', { messages: [{ role: 'user', content: { type: 'text', text: tag } }], maxTokens: 10 }],
  elicitation: (tag) => [
    'elicitation/create', { message: tag, requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } }
  ],
  roots: () => ['roots/list', {}]
}

const said = (text, more) => ({ content: [{ type: 'text', text: String(text) }], ...more })
const answered = (id, json) => { process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${json}}\n`) }

/** Begins a task that ends after its time, or when the question that it asks then (`ask`: its kind) is answered. */
function work (id, args, token) {
  const now = new Date().toISOString()
  const task = { taskId: process.env.FAULT_COUNTS ? `t${tasks.size}` : `task-${process.pid}-${tasks.size}`, status: 'working', createdAt: now, lastUpdatedAt: now, ttl: 60_000 }
  tasks.set(task.taskId, { task, result: said('done') })
  const progress = (at) =>
    token === undefined ? [] : [{ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: token, progress: at } }]
  const end = async () => {
    await wait(args.gate, args.time)
    for (const each of progress(2)) line(each)
    if (args.ask) {
      const [method, params] = questionOf[args.ask](args.tag)
      const _meta = { 'io.modelcontextprotocol/related-task': { taskId: task.taskId } }
      const answer = await ask(method, args.unmarked ? params : { ...params, _meta })
      tasks.get(task.taskId).result = said(JSON.stringify(answer.result ?? answer.error))
    }
    if (task.status !== 'cancelled') task.status = 'completed'
    line({ jsonrpc: '2.0', method: 'notifications/tasks/status', params: task })
  }
  // The first news come in one piece with the answer.
  process.stdout.write([{ jsonrpc: '2.0', id, result: { task } }, ...progress(1)].map((each) => JSON.stringify(each) + '\n').join(''))
  end()
}

async function call (id, name, args, meta) {
  switch (name) {
    case 'echo':
      await wait(args.gate, args.delay)
      return said(args.message ?? '')
    case 'pid': return said(process.pid)
    case 'ask': {
      await wait(args.before ?? args.gate, args.delay)
      const answer = await ask(...questionOf[args.kind](args.tag))
      await wait(args.after, args.linger)
      return answer.error ? said(answer.error.message, { isError: true }) : said(JSON.stringify(answer.result))
    }
    case 'hang':
      log({ event: 'hang', id })
      await new Promise((resolve) => { running.set(id, resolve) })
      return undefined
    case 'stderr': {
      const chunk = Buffer.alloc(64 * 1024, 'x')
      for (let byte = 79; byte < chunk.length; byte += 80) chunk[byte] = 0x0a
      for (let sent = 0; sent < args.mib * 16; sent++) {
        try { writeSync(2, chunk) } catch (error) { if (error.code !== 'EAGAIN') throw error }
      }
      return said('flooded')
    }
    case 'noise':
      noise()
      return said('quiet again')
    case 'endless': {
      const chunk = Buffer.alloc(64 * 1024, 'y')
      for (let sent = 0; sent < args.mib * 16; sent++) {
        if (!process.stdout.write(chunk)) await new Promise((resolve) => { process.stdout.once('drain', resolve) })
      }
      return undefined
    }
    case 'deep': return answered(id, `{"content":[],"structuredContent":{"a":${'['.repeat(args.levels)}${']'.repeat(args.levels)}}}`)
    case 'raw': return answered(id, args.json)
    case 'mute':
      // closes its output for good, and lives on
      closeSync(1)
      process.stdout.destroy()
      stayAlive()
      return undefined
    case 'stubborn':
      stayDeaf()
      process.stdin.removeAllListeners('end')
      stayAlive()
      return said(process.pid)
    case 'crash':
      process.stderr.write(`boom: ${args.secret}\n`)
      return process.exit(1)
    case 'exit': return process.exit(args.code ?? 1)
    case 'grow':
      tools.push(toolOf(args.name))
      line({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
      return said('grown')
    case 'touch':
      if (subscribed.has(args.uri)) line({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: args.uri } })
      return said([...subscribed].join())
    case 'work': return work(id, args, meta?.progressToken)
    case 'say':
      line({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: args.data } })
      return said('')
    case 'page': {
      const { id: elicitationId } = args
      const answer = await ask('elicitation/create', { mode: 'url', message: 'please visit', url: 'https://example.com/', elicitationId })
      wait(args.gate, args.time).then(() => {
        line({ jsonrpc: '2.0', method: 'notifications/elicitation/complete', params: { elicitationId } })
      })
      return said(JSON.stringify(answer.result))
    }
    default: return said(name)
  }
}

async function answer ({ id, method, params }) {
  const { FAULT_MORTAL: isMortal, FAULT_LIVELY: isLively, FAULT_NOISE: isNoisy } = process.env
  switch (method) {
    case 'initialize':
      log({ event: 'initialize', capabilities: params.capabilities })
      if (isNoisy) noise()
      return {
        protocolVersion: params.protocolVersion,
        capabilities: {
          tools: { listChanged: true },
          ...(isMortal || isLively ? { resources: { subscribe: true } } : {}),
          ...(isLively ? { logging: {}, tasks: { requests: { tools: { call: {} } } } } : {})
        },
        serverInfo: { name: 'fault-stdio', version: '1.0.0' }
      }
    case 'tools/list': return { tools }
    case 'tools/call': return await call(id, params.name, params.arguments ?? {}, params._meta)
    case 'ping': return {}
    case 'tasks/get': case 'tasks/result': case 'tasks/cancel': {
      const known = tasks.get(params.taskId)
      if (!known) throw Object.assign(new Error('no such task'), { code: -32602 })
      if (method === 'tasks/cancel') known.task.status = 'cancelled'
      if (method === 'tasks/cancel') return known.task
      if (method === 'tasks/get') return known.task
      log({ event: method })
      while (known.task.status === 'working') await sleep(20)
      return known.result
    }
    case 'logging/setLevel': log({ event: 'level', level: params.level }); return {}
    case 'resources/unsubscribe': subscribed.delete(params.uri); log({ event: 'unsubscribe', uri: params.uri }); return {}
    case 'resources/list': if (isMortal || isLively) return { resources: [{ uri: 'r://1', name: 'one' }] }
    // falls through
    case 'resources/subscribe':
      if (isLively) {
        subscribed.add(params.uri)
        log({ event: 'subscribe', uri: params.uri })
        return {}
      }
      if (isMortal) {
        setTimeout(() => { process.exit(7) }, 50)
        return {}
      }
    // falls through
    default: throw Object.assign(new Error('Method not found'), { code: -32601 })
  }
}

function receive (message) {
  if (message.method === undefined) {
    questions.get(message.id)?.(message)
    questions.delete(message.id)
  } else if (message.id === undefined) {
    log({ event: message.method, params: message.params })
    if (message.method === 'notifications/cancelled') running.get(message.params.requestId)?.()
  } else {
    answer(message).then(
      (result) => { if (result !== undefined) line({ jsonrpc: '2.0', id: message.id, result }) },
      (error) => { line({ jsonrpc: '2.0', id: message.id, error: { code: error.code ?? -32603, message: error.message } }) }
    )
  }
}

let rest = ''
process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\n')
  rest = lines.pop()
  for (const one of lines) if (one !== '') receive(JSON.parse(one))
})
process.stdin.on('end', () => { if (!process.env.FAULT_STUBBORN) process.exit(0) })
