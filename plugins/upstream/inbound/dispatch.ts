import type { Call } from '../../../protocol/call.ts'
import { requireClientCapability, classOf } from '../../../protocol/capabilities.ts'
import { code, RpcError } from '../../../protocol/errors.ts'
import type { Client, Exchange, Question } from '../../../protocol/exchange.ts'
import { isObject, smallMemberOf } from '../../../protocol/json.ts'
import type { Notification, Response } from '../../../protocol/message.ts'
import { restoredProgress } from '../../../protocol/progress.ts'
import { copyOf, largeText } from '../../../protocol/text.ts'
import type { Origin } from '../../../protocol/upstream-session.ts'
import { ownerAt } from '../../base/limits/index.ts'
import type { Link } from '../links/link.ts'
import type { Slot } from '../links/slot.ts'
import { attribute, type Attribution } from './attribution.ts'

/** What is done with messages that answer no request. */
export interface DispatchDeps {
  name: string
  refresh: (slot: Slot) => void
  /** Several clients had calls open, so that a question had no certain recipient. */
  contested: () => void
  /** Called before a question is put to a client. @throws RpcError to refuse it */
  onQuestion: (question: Question, client: Client) => Promise<void>
  /** For every client that the slot serves and whose principal alone has used the link. */
  broadcast: (slot: Slot, link: Link, method: string, paramsText: string) => void
  /** It has no certain recipient. */
  dropped: (method: string) => void
}

/** The task that a message belongs to (MCP 2025-11-25, "Related Task Metadata"). */
function taskOf ({ _meta }: Record<string, unknown>): string | undefined {
  const related = isObject(_meta) ? _meta['io.modelcontextprotocol/related-task'] : undefined
  return isObject(related) && typeof related.taskId === 'string' ? related.taskId : undefined
}

const clientIdOf = ({ client }: Call): string => client.id

/**
 * Identifies the client that is asked about a call. A session of a former revision is one client. Requests of MCP
 * 2026-07-28 are of one client if principal and capabilities are the same. Callers without credentials are told apart:
 * many people may share an address.
 */
function askedClientOf ({ client, exchange }: Call): string {
  if (exchange?.canSuspend !== true || isWithoutCredentials(exchange)) return client.id
  const { id, principal = id, owner = id, capabilities } = client
  return JSON.stringify([principal, owner, classOf(capabilities)])
}

const isWithoutCredentials = ({ address, client }: Exchange): boolean =>
  address !== undefined && client.owner === ownerAt(address)

/** How many questions each call waits for. */
const asked = new WeakMap<Call, number>()

interface Recipients { readonly ownerOf: (call: Call) => string, readonly isAsked?: (call: Call) => boolean }

const forQuestions: Recipients = { ownerOf: askedClientOf, isAsked: (call) => asked.has(call) }
const forNotifications: Recipients = { ownerOf: clientIdOf }

/** The client that a message is for. A task's message is for the client that waits for its result, or else began it. */
function recipientOf (
  { tasks, owner }: Slot,
  link: Link,
  origin: Origin,
  params: Record<string, unknown>,
  recipients: Recipients
): Attribution<Call, Client> {
  const taskId = taskOf(params)
  if (taskId === undefined) {
    const workers = tasks.workersOn(link).map(({ id }) => id)
    return attribute({ origin, open: link.openCalls, ...recipients, workers, owner })
  }
  const known = tasks.knowsTask(taskId)
  const isOwn = origin !== undefined && origin !== 'over' && (!known || tasks.hasTask(taskId, origin.client))
  const waits = ({ client, method, params }: Call): boolean =>
    method === 'tasks/result' && params.taskId === taskId && tasks.hasTask(taskId, client)
  return attribute({
    origin: isOwn ? origin : undefined,
    open: link.openCalls.filter(waits),
    ...recipients,
    workers: [],
    owner: known ? tasks.ownerOfTask(taskId) : owner
  })
}

type Asked = Extract<Attribution<Call, Client>, { kind: 'call' | 'owner' }>

/** The client that a question is put to. @throws RpcError to answer the upstream with, where there is none */
function askedOf (
  { name, contested }: DispatchDeps, slot: Slot, link: Link, { method, params }: Question, origin: Origin
): Asked {
  const target = recipientOf(slot, link, origin, params, forQuestions)
  if (target.kind === 'call' || target.kind === 'owner') return target
  if (target.kind === 'over') throw new RpcError(code.invalidRequest, `The request that ${method} belongs to is over`)
  if (target.kind === 'contested') contested()
  throw new RpcError(
    code.invalidRequest,
    `Tool-Hub cannot tell which client ${method} is for: several share this connection. ` +
    `Set "isolation": "session" for server ${JSON.stringify(name)}`
  )
}

/** Puts an upstream's question to its recipient. @throws RpcError to answer the upstream with */
export async function dispatchQuestion (
  deps: DispatchDeps, slot: Slot, link: Link, question: Question, origin: Origin
): Promise<Response> {
  const target = askedOf(deps, slot, link, question, origin)
  if (target.kind === 'owner') return await putTo(deps, slot, question, target.owner, target.owner)
  const { call } = target
  const asker = askedClientOf(call)
  // Only the time relates it to the call.
  const isGuessed = origin === undefined && call.exchange?.canSuspend === true
  try {
    return await whileAsked(
      call, putTo(deps, slot, isGuessed ? { ...question, outlivesRequest: true } : question, call.client, call)
    )
  } catch (error) {
    // The call is over, but the question may be about another one of the same client.
    const isLeft = origin === undefined && call.over && !question.signal.aborted &&
      link.openCalls.some((each) => askedClientOf(each) === asker)
    if (!isLeft) throw error
    return await dispatchQuestion(deps, slot, link, question, undefined)
  }
}

/** Puts a question to a client, if it may be asked. @throws RpcError */
async function putTo (
  { onQuestion }: DispatchDeps,
  { tasks }: Slot,
  question: Question,
  client: Client,
  by: Pick<Call, 'ask'>
): Promise<Response> {
  requireClientCapability(client.capabilities, question)
  await onQuestion(question, client)
  if (question.method === 'elicitation/create') tasks.elicitation(question.params.elicitationId, client)
  return await by.ask(question)
}

/** Notes that a call waits for the answer to a question. */
async function whileAsked (call: Call, answer: Promise<Response>): Promise<Response> {
  asked.set(call, (asked.get(call) ?? 0) + 1)
  try {
    return await answer
  } finally {
    const left = (asked.get(call) ?? 1) - 1
    if (left > 0) asked.set(call, left)
    else asked.delete(call)
  }
}

/** Passes an upstream's notification to its recipients. */
export function dispatchNotification (
  deps: DispatchDeps, slot: Slot, link: Link, notification: Notification, origin: Origin
): void {
  const { method, params, paramsText } = notification
  switch (method) {
    case 'notifications/tools/list_changed':
    case 'notifications/prompts/list_changed':
    case 'notifications/resources/list_changed':
      deps.refresh(slot)
      return
    case 'notifications/resources/updated':
      if (typeof params.uri !== 'string') return
      for (const subscriber of slot.subscriptions.subscribersOf(params.uri)) {
        subscriber.listener?.deliver(method, paramsText)
      }
      return
    case 'notifications/progress': {
      // A task goes on reporting under the token of the call that began it.
      const progress = slot.tasks.progressOf(link, params.progressToken)
      if (progress) deliver(deps, progress.client, method, restoredProgress(paramsText, progress.clientToken))
      else deps.dropped(method)
      return
    }
    case 'notifications/tasks/status': {
      const owner = slot.tasks.ownerOfTask(params.taskId)
      slot.tasks.task(params, link)
      deliver(deps, owner, method, paramsText)
      return
    }
    case 'notifications/elicitation/complete':
      deliver(deps, slot.tasks.elicited(params.elicitationId), method, paramsText)
      return
    default:
      dispatchOther(deps, slot, link, notification, origin)
  }
}

function deliver ({ dropped }: DispatchDeps, client: Client | undefined, method: string, paramsText: string): void {
  if (client?.listener) client.listener.deliver(method, paramsText)
  else dropped(method)
}

/** A log message, or a notification of an unknown kind. */
function dispatchOther (
  deps: DispatchDeps, slot: Slot, link: Link, { method, params, paramsText }: Notification, origin: Origin
): void {
  const isLog = method === 'notifications/message'
  const target = recipientOf(slot, link, origin, params, forNotifications)
  switch (target.kind) {
    case 'call':
      target.call.notify(method, paramsText)
      return
    case 'owner':
      deliver(deps, target.owner, method, paramsText)
      return
    case 'idle':
      // A log message is for every listener, unless it may be about another principal that uses the link.
      if (isLog && !link.isShared) deps.broadcast(slot, link, method, paramsText)
      else deps.dropped(method)
      return
    case 'contested':
      if (isLog && isOfOnePrincipal(slot, link)) for (const call of latestOfEach(link)) call.notify(method, paramsText)
      else deps.dropped(method)
      return
    case 'over':
      deps.dropped(method)
  }
}

/** Everything under way on a link is of one principal: each of its clients may hear what the others may. */
function isOfOnePrincipal ({ tasks }: Slot, link: Link): boolean {
  const clients = [...link.openCalls.map(({ client }) => client), ...tasks.workersOn(link)]
  return new Set(clients.map(({ principal, id }) => principal ?? id)).size === 1
}

/** The latest open call of each client. */
function latestOfEach (link: Link): Iterable<Call> {
  return new Map(link.openCalls.map((call) => [call.client.id, call])).values()
}

/** Notes what an answer begins or ends: a task, or pages to visit before the call is repeated (-32042). */
export function noteAnswer ({ tasks }: Slot, link: Link, call: Call, { resultText, errorText }: Response): void {
  const { client, method, params } = call
  if (params.task === undefined && errorText === undefined && !method.startsWith('tasks/')) return
  if (errorText === undefined && method === 'tasks/result') { tasks.taskOver(params.taskId); return }
  if (errorText !== undefined) {
    const data = smallMemberOf(errorText, 'data')
    const elicitations = isObject(data) ? data.elicitations : undefined
    if (!Array.isArray(elicitations)) return
    for (const each of elicitations) if (isObject(each)) tasks.elicitation(each.elicitationId, client)
    return
  }
  // The state of a task is small.
  const value: unknown = resultText === undefined || resultText.length > largeText ? {} : JSON.parse(resultText)
  if (!isObject(value)) return
  if (isObject(value.task)) {
    const { clientToken } = call
    const progress = clientToken === undefined
      ? undefined
      : { client, link, token: call.id, clientToken: copyOf(clientToken) }
    tasks.task(value.task, link, client, progress)
  } else tasks.task(value, link, client)
}
