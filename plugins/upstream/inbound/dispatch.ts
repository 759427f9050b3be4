import type { Call } from '../../../protocol/call.ts'
import { code, RpcError } from '../../../protocol/errors.ts'
import type { Client, Question } from '../../../protocol/exchange.ts'
import { isObject, memberOf, withMembers } from '../../../protocol/json.ts'
import { mayBeAsked } from '../../../protocol/capabilities.ts'
import type { Notification, Response } from '../../../protocol/message.ts'
import { attribute, type Target } from './attribution.ts'
import type { Link, Origin } from '../links/link.ts'
import type { Slot } from '../links/slot.ts'

/** What becomes of something that an upstream sent unasked. */
export interface DispatchDeps {
  name: string
  /** A list changed. */
  refresh: (slot: Slot) => void
  /** Several clients had calls open, and nothing told whom a question was for. */
  contested: () => void
  /** Told before a question goes to a client. @throws RpcError to refuse it */
  onQuestion: (question: Question, client: Client) => Promise<void>
  /** For everybody whom the slot serves. */
  broadcast: (slot: Slot, method: string, paramsText: string) => void
  /** For nobody that is known. */
  dropped: (method: string) => void
}

/** The task that something is said to belong to (MCP 2025-11-25, "Related Task Metadata"). */
function taskOf ({ _meta }: Record<string, unknown>): string | undefined {
  const related = isObject(_meta) ? _meta['io.modelcontextprotocol/related-task'] : undefined
  return isObject(related) && typeof related.taskId === 'string' ? related.taskId : undefined
}

/** Whom a question or a message is for. One of a task is for who waits for its result, or else for who began it, whatever else is open. */
function whom ({ pending, owner }: Slot, link: Link, origin: Origin, params: Record<string, unknown>): Target<Call, Client> {
  const ownerOf = (call: Call): string => call.exchange.client.id
  const taskId = taskOf(params)
  if (taskId === undefined) {
    return attribute({ origin, open: link.calls.values(), ownerOf, workers: pending.workersOn(link).map(({ id }) => id), owner })
  }
  const known = pending.knowsTask(taskId)
  const own = origin !== undefined && origin !== 'over' && (!known || pending.hasTask(taskId, origin.exchange.client))
  const waits = ({ exchange: { client, method, params } }: Call): boolean =>
    method === 'tasks/result' && params.taskId === taskId && pending.hasTask(taskId, client)
  return attribute({
    origin: own ? origin : undefined,
    open: link.calls.values().filter(waits),
    ownerOf,
    workers: [],
    owner: known ? pending.ownerOfTask(taskId) : owner
  })
}

/** Takes an upstream's question to the one client that it is for. @throws RpcError to answer the upstream with */
export async function takeQuestion (
  { name, contested, onQuestion }: DispatchDeps,
  slot: Slot,
  link: Link,
  question: Question,
  origin: Origin
): Promise<Response> {
  const target = whom(slot, link, origin, question.params)
  if (target.kind === 'over') throw new RpcError(code.invalidRequest, `The request that ${question.method} belongs to is over`)
  if (target.kind === 'contested') contested()
  if (target.kind === 'contested' || target.kind === 'idle') {
    throw new RpcError(
      code.invalidRequest,
      `Tool-Hub cannot tell which client ${question.method} is for: several share this connection. Set "isolation": "session" for server ${JSON.stringify(name)}`
    )
  }
  const client = target.kind === 'call' ? target.call.exchange.client : target.owner
  if (!mayBeAsked(client.capabilities, question.method)) {
    throw new RpcError(code.methodNotFound, `The client does not support ${question.method}`)
  }
  await onQuestion(question, client)
  if (question.method === 'elicitation/create') slot.pending.elicitation(question.params.elicitationId, client)
  if (target.kind === 'owner') return await client.ask(question)
  return await target.call.asking(async () => await target.call.exchange.ask(question))
}

/** Takes an upstream's notification to whom it is for. */
export function takeNews (
  { refresh, broadcast, dropped }: DispatchDeps,
  slot: Slot,
  link: Link,
  { method, params, paramsText }: Notification,
  origin: Origin
): void {
  if (/^notifications\/(tools|prompts|resources)\/list_changed$/.test(method)) {
    refresh(slot)
    return
  }
  if (method === 'notifications/resources/updated') {
    for (const subscriber of slot.subscribersOf(params.uri)) subscriber.notify(method, paramsText)
    return
  }
  if (method === 'notifications/progress') {
    const progress = slot.pending.progressOf(link, params.progressToken)
    if (progress) progress.client.notify(method, withMembers(paramsText, { progressToken: progress.clientToken }))
    else dropped(method)
    return
  }
  if (method === 'notifications/tasks/status' || method === 'notifications/elicitation/complete') {
    const owner =
      method === 'notifications/tasks/status' ? slot.pending.ownerOfTask(params.taskId) : slot.pending.elicited(params.elicitationId)
    if (method === 'notifications/tasks/status') slot.pending.task(params, link)
    if (owner) owner.notify(method, paramsText)
    else dropped(method)
    return
  }
  const target = whom(slot, link, origin, params)
  switch (target.kind) {
    case 'call':
      target.call.exchange.notify(method, paramsText)
      break
    case 'owner':
      target.owner.notify(method, paramsText)
      break
    // Only a log message is for whoever listens.
    case 'idle':
      if (method === 'notifications/message') broadcast(slot, method, paramsText)
      else dropped(method)
      break
    case 'contested':
      if (method === 'notifications/message' && isOfOnePrincipal(slot, link)) {
        for (const client of latestOfEach(link)) client.exchange.notify(method, paramsText)
      } else dropped(method)
      break
    case 'over':
      dropped(method)
  }
}

/** True when all that is under way on a link is one principal's: what one of its clients may hear, they all may. */
function isOfOnePrincipal ({ pending }: Slot, link: Link): boolean {
  const clients = [...link.calls.values().map(({ exchange }) => exchange.client), ...pending.workersOn(link)]
  return new Set(clients.map(({ principal, id }) => principal ?? id)).size === 1
}

/** The latest call of each client that has one open. */
function latestOfEach (link: Link): Iterable<Call> {
  return new Map(link.calls.values().map((call) => [call.exchange.client.id, call])).values()
}

/** Takes from an answer that something goes on, or is over: a task, or pages to visit before the call can be repeated (-32042). */
export function takeAnswer (
  { pending }: Slot,
  link: Link,
  { id, exchange: { client, method, params, paramsText } }: Call,
  { resultText, errorText }: Response
): void {
  if (params.task === undefined && errorText === undefined && !method.startsWith('tasks/')) return
  if (errorText === undefined && method === 'tasks/result') {
    pending.taskOver(params.taskId)
    return
  }
  const value: unknown = JSON.parse(resultText ?? errorText ?? '{}')
  if (!isObject(value)) return
  if (errorText !== undefined) {
    const elicitations = isObject(value.data) ? value.data.elicitations : undefined
    if (Array.isArray(elicitations)) for (const each of elicitations) if (isObject(each)) pending.elicitation(each.elicitationId, client)
  } else if (isObject(value.task)) {
    const clientToken = memberOf(memberOf(paramsText, '_meta') ?? '{}', 'progressToken')
    pending.task(value.task, link, client, clientToken === undefined ? undefined : { client, link, token: id, clientToken })
  } else pending.task(value, link, client)
}
