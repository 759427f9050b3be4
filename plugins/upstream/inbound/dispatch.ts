import type { Call } from '../../../protocol/call.ts'
import { requireClientCapability, capabilityClassOf } from '../../../protocol/capabilities.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { isStreamNotification } from '../../../protocol/events.ts'
import type { Client, Exchange, Question } from '../../../protocol/exchange.ts'
import { isMcpMethod } from '../../../protocol/lookalikes.ts'
import type { Notification, Response } from '../../../protocol/message.ts'
import { restoreProgressToken } from '../../../protocol/progress.ts'
import { relatedTaskOf, replaceTaskId } from '../../../protocol/task-ids.ts'
import type { MessageOrigin } from '../../../protocol/upstream-session.ts'
import { ownerOfAddress } from '../../base/limits/index.ts'
import type { Link } from '../links/link.ts'
import type { Slot } from '../links/slot.ts'
import type { UpstreamListener } from '../upstream-deps.ts'
import { findMessageRecipient, type MessageRecipient } from './attribution.ts'
import { dispatchEventStreamNotification } from './stream-events.ts'

/** The dependencies of `dispatchQuestion` and `dispatchNotification`, for one server. */
export interface DispatchDeps extends Pick<UpstreamListener, 'onQuestion' | 'onNotification' | 'taskHandle'> {
  /** The server's name. */
  name: string
  /** Called when the upstream announces that a list has changed. */
  refresh: (slot: Slot) => void
  /** Called if a question has no certain recipient, because calls or tasks of several clients are open. */
  onContested: () => void
  /** Sends to each client that the slot serves, but skips a client if other principals have used the link. */
  broadcast: (slot: Slot, link: Link, method: string, paramsText: string) => void
  /** Called when a notification is dropped, because it has no certain recipient or the recipient is gone. */
  onDropped: (method: string) => void
}

const clientIdOf = ({ client }: Call): string => client.id

/**
 * Identifies the client that is asked a question about a call. Up to MCP 2025-11-25, each session is a client. Requests
 * of MCP 2026-07-28 come from the same client if their principal, owner and capabilities are the same. Requests without
 * credentials are each treated as another client, since many people may share an address.
 */
function askedClientOf ({ client, exchange }: Call): string {
  if (!exchange.canSuspend || isWithoutCredentials(exchange)) return client.id
  const { id, principalKey: principal = id, owner = id, capabilities } = client
  return JSON.stringify([principal, owner, capabilityClassOf(capabilities)])
}

const isWithoutCredentials = ({ address, client }: Exchange): boolean =>
  address !== undefined && client.owner === ownerOfAddress(address)

/** The number of questions about each call that its client has not answered yet. */
const pendingQuestions = new WeakMap<Call, number>()

interface Recipients { readonly ownerOf: (call: Call) => string, readonly isAsked?: (call: Call) => boolean }

const forQuestions: Recipients = { ownerOf: askedClientOf, isAsked: (call) => pendingQuestions.has(call) }
const forNotifications: Recipients = { ownerOf: clientIdOf }

/**
 * Finds the recipient of a message with `findMessageRecipient`. A message about a task on an unknown stream goes to a
 * call that waits for the task's result (`tasks/result`), otherwise to the client that started the task or last asked
 * about it.
 */
function recipientOf (
  { tasks, owner }: Slot,
  link: Link,
  origin: MessageOrigin,
  params: Record<string, unknown>,
  recipients: Recipients
): MessageRecipient<Call, Client> {
  const taskId = relatedTaskOf(params)
  if (taskId === undefined) {
    const taskOwners = tasks.taskClientsOn(link).map(({ id }) => id)
    return findMessageRecipient({ origin, open: link.openCalls, ...recipients, taskOwners, owner })
  }
  const known = tasks.knowsTask(taskId)
  const isOwn = origin !== undefined && origin !== 'over' && (!known || tasks.hasTask(taskId, origin.client))
  const waits = ({ client, method, params }: Call): boolean =>
    method === 'tasks/result' && params.taskId === taskId && tasks.hasTask(taskId, client)
  return findMessageRecipient({
    origin: isOwn ? origin : undefined,
    open: link.openCalls.filter(waits),
    ...recipients,
    taskOwners: [],
    owner: known ? tasks.ownerOfTask(taskId) : owner
  })
}

type QuestionRecipient = Extract<MessageRecipient<Call, Client>, { kind: 'call' | 'owner' }>

/** Finds the recipient of a question. @throws RpcError, to be sent to the upstream, if there is no certain recipient */
function questionRecipientOf (
  { name, onContested }: DispatchDeps, slot: Slot, link: Link, { method, params }: Question, origin: MessageOrigin
): QuestionRecipient {
  const target = recipientOf(slot, link, origin, params, forQuestions)
  if (target.kind === 'call' || target.kind === 'owner') return target
  if (target.kind === 'over') {
    throw new RpcError(rpcCode.invalidRequest, `The request that ${method} belongs to has ended`)
  }
  if (target.kind === 'contested') onContested()
  throw new RpcError(
    rpcCode.invalidRequest,
    `Tool-Hub cannot tell which client ${method} is for: several share this connection. ` +
    `Set "isolation": "session" for server ${JSON.stringify(name)}`
  )
}

/**
 * Sends an upstream's question (a request to a client, such as `elicitation/create`) to its recipient.
 * @returns the client's answer
 * @throws RpcError, to be sent to the upstream, if there is no certain recipient or the question is not allowed
 */
export async function dispatchQuestion (
  deps: DispatchDeps, slot: Slot, link: Link, question: Question, origin: MessageOrigin
): Promise<Response> {
  const target = questionRecipientOf(deps, slot, link, question, origin)
  if (target.kind === 'owner') return await askClient(deps, slot, question, target.owner, target.owner)
  const { call } = target
  const askedClient = askedClientOf(call)
  // Without a stream, the call is only a guess, so the question must not end with the call.
  const isGuessed = origin === undefined && call.exchange.canSuspend
  try {
    return await countWhilePending(
      call, askClient(deps, slot, isGuessed ? { ...question, outlivesRequest: true } : question, call.client, call)
    )
  } catch (error) {
    // The guessed call has ended, but the question may be about another open call of the same client.
    const isLeft = origin === undefined && call.isOver && !question.signal.aborted &&
      link.openCalls.some((each) => askedClientOf(each) === askedClient)
    if (!isLeft) throw error
    return await dispatchQuestion(deps, slot, link, question, undefined)
  }
}

/**
 * Sends a question to a client, with the client's id of the related task in place of the server's.
 * @throws RpcError if the client does not support such questions, or the question is refused
 */
async function askClient (
  { onQuestion, taskHandle }: DispatchDeps,
  { tasks }: Slot,
  question: Question,
  client: Client,
  by: Pick<Call, 'ask'>
): Promise<Response> {
  requireClientCapability(client.capabilities, question)
  await onQuestion(question, client)
  if (question.method === 'elicitation/create') tasks.recordElicitation(question.params.elicitationId, client)
  const taskId = relatedTaskOf(question.params)
  if (taskId === undefined) return await by.ask(question)
  const handle = await findHandle(() => taskHandle(client, taskId))
  if (handle === undefined) return await by.ask(question)
  const paramsText = replaceTaskId(question.paramsText, taskId, handle)
  const params = JSON.parse(paramsText) as Record<string, unknown>
  const { resultText, ...answer } = await by.ask({ ...question, params, paramsText })
  return resultText === undefined
    ? answer
    : { ...answer, resultText: replaceTaskId(resultText, handle, taskId) }
}

/**
 * Finds the id by which a client knows a task. If the id is not known yet, the response that starts the task may still
 * be in processing, so the id is looked up once more after the pending events.
 */
async function findHandle (find: () => string | undefined): Promise<string | undefined> {
  const known = find()
  if (known !== undefined) return known
  await new Promise((resolve) => { setImmediate(resolve) })
  return find()
}

/** Counts a question about a call as pending until the client's answer has arrived. */
async function countWhilePending (call: Call, answer: Promise<Response>): Promise<Response> {
  pendingQuestions.set(call, (pendingQuestions.get(call) ?? 0) + 1)
  try {
    return await answer
  } finally {
    const left = (pendingQuestions.get(call) ?? 1) - 1
    if (left > 0) pendingQuestions.set(call, left)
    else pendingQuestions.delete(call)
  }
}

/**
 * Handles an upstream's notification: reads changed lists again, and forwards other notifications to their recipients.
 */
export function dispatchNotification (
  deps: DispatchDeps, slot: Slot, link: Link, notification: Notification, origin: MessageOrigin
): void {
  const { method, params, paramsText } = notification
  switch (method) {
    case 'notifications/tools/list_changed':
    case 'notifications/prompts/list_changed':
    case 'notifications/resources/list_changed':
    case 'notifications/events/list_changed':
    case 'notifications/skills/list_changed': // Not in the extension, but servers send it.
      deps.refresh(slot)
      return
    case 'notifications/resources/updated':
      if (typeof params.uri !== 'string') return
      for (const subscriber of slot.subscriptions.subscribersOf(params.uri)) {
        subscriber.listener?.deliver(method, paramsText)
      }
      return
    case 'notifications/progress': {
      // A task reports progress with the token of the call that started it.
      const progress = slot.tasks.progressOf(link, params.progressToken)
      if (progress) deliver(deps, progress.client, method, restoreProgressToken(paramsText, progress.clientToken))
      else deps.onDropped(method)
      return
    }
    case 'notifications/tasks/status': {
      const owner = slot.tasks.ownerOfTask(params.taskId)
      slot.tasks.recordTask(params, link)
      deliverOfTask(deps, owner, notification, String(params.taskId)).catch(() => { deps.onDropped(method) })
      return
    }
    // The gateway does not subscribe to this notification of MCP 2026-07-28; clients poll with `tasks/get`.
    case 'notifications/tasks': deps.onDropped(method); return
    case 'notifications/elicitation/complete':
      deliver(deps, slot.tasks.completeElicitation(params.elicitationId), method, paramsText)
      return
    default:
      if (!isStreamNotification(method)) dispatchOther(deps, slot, link, notification, origin)
      else if (!dispatchEventStreamNotification(link, notification, origin)) deps.onDropped(method)
  }
}

function deliver (
  { onDropped, onNotification }: DispatchDeps, client: Client | undefined, method: string, paramsText: string
): void {
  const listener = client?.listener
  if (listener) onNotification(paramsText, (text) => { listener.deliver(method, text) })
  else onDropped(method)
}

/** Delivers a notification about a task to a client, with the client's id of the task in place of the server's. */
async function deliverOfTask (
  deps: DispatchDeps, client: Client | undefined, { method, paramsText }: Notification, taskId: string
): Promise<void> {
  const handle = client && await findHandle(() => deps.taskHandle(client, taskId, paramsText))
  if (handle === undefined) deps.onDropped(method)
  else deliver(deps, client, method, replaceTaskId(paramsText, taskId, handle))
}

/** Forwards a log message, or a notification of an unknown kind. */
function dispatchOther (
  deps: DispatchDeps, slot: Slot, link: Link, { method, params, paramsText }: Notification, origin: MessageOrigin
): void {
  const isLog = method === 'notifications/message'
  // Other notifications of MCP itself that reach this point are for servers.
  if (!isLog && isMcpMethod(method)) { deps.onDropped(method); return }
  const target = recipientOf(slot, link, origin, params, forNotifications)
  switch (target.kind) {
    case 'call':
      target.call.notify(method, withHandle(deps, target.call.client, params, paramsText))
      return
    case 'owner':
      deliver(deps, target.owner, method, withHandle(deps, target.owner, params, paramsText))
      return
    case 'idle':
      // A notification that belongs to no call is broadcast, unless several principals have used the link.
      if (!link.isShared) deps.broadcast(slot, link, method, paramsText)
      else deps.onDropped(method)
      return
    case 'contested':
      if (isLog && isOfOnePrincipal(slot, link)) for (const call of latestOfEach(link)) call.notify(method, paramsText)
      else deps.onDropped(method)
      return
    case 'over':
      deps.onDropped(method)
  }
}

/** Returns a notification's params for a client, with the client's id of the related task in place of the server's. */
function withHandle (
  { taskHandle }: DispatchDeps, client: Client, params: Record<string, unknown>, paramsText: string
): string {
  const taskId = relatedTaskOf(params)
  const handle = taskId === undefined ? undefined : taskHandle(client, taskId)
  return taskId === undefined || handle === undefined ? paramsText : replaceTaskId(paramsText, taskId, handle)
}

/** Whether all open calls and tasks on a link belong to one principal, so that all its clients may get a message. */
function isOfOnePrincipal ({ tasks }: Slot, link: Link): boolean {
  const clients = [...link.openCalls.map(({ client }) => client), ...tasks.taskClientsOn(link)]
  return new Set(clients.map(({ principalKey: principal, id }) => principal ?? id)).size === 1
}

/** Returns the latest open call of each client on a link. */
function latestOfEach (link: Link): Iterable<Call> {
  return new Map(link.openCalls.map((call) => [call.client.id, call])).values()
}
