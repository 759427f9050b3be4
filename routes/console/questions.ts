import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { FastifyInstance } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import { escapeInvisible } from '../../plugins/extensions/index.ts'
import { managementLimits, parseIfJson } from '../../plugins/management/index.ts'
import { isPlainObject } from '../../schemas/unknown-members.ts'
import { argumentFieldsIn, type SubmittedForm, formFieldText } from './page.ts'

/** A server's question to the client during a call (`inputRequests`): elicitation, sampling or roots. */
const Question = Type.Object({
  method: Type.String(),
  params: Type.Optional(Type.Object({
    message: Type.Optional(Type.String()),
    mode: Type.Optional(Type.String()),
    url: Type.Optional(Type.String()),
    requestedSchema: Type.Optional(Type.Unknown()),
    systemPrompt: Type.Optional(Type.String()),
    messages: Type.Optional(Type.Array(
      Type.Object({ role: Type.Optional(Type.String()), content: Type.Optional(Type.Unknown()) })
    ))
  }))
})
type Question = Static<typeof Question>

const WaitingCall = Type.Object({
  /** The arguments of the call, as JSON text. */
  args: Type.String(),
  /** The `requestState` of the server's result, which is sent back with the responses. */
  state: Type.Optional(Type.String()),
  /** The unanswered questions, as pairs of name and question. */
  open: Type.Array(Type.Tuple([Type.String(), Question])),
  /** The answers so far, by the names of the questions. */
  responses: Type.Record(Type.String(), Type.Unknown())
})
/** A call that waits for answers. A hidden field in the form of each question contains the whole call. */
export type WaitingCall = Static<typeof WaitingCall>
/** A waiting call, with the name of the question that the submitted form answers. */
const AnsweredCall = Type.Composite([WaitingCall, Type.Object({ name: Type.String() })])
type AnsweredCall = Static<typeof AnsweredCall>

/** Returns the questions in a result's `inputRequests`; undefined if one of them does not have the expected form. */
export const readInputRequests = (requests: unknown): WaitingCall['open'] | undefined => {
  const open = Object.entries(isPlainObject(requests) ? requests : {})
  return Value.Check(WaitingCall.properties.open, open) ? open : undefined
}

/**
 * Returns the reason why the questions of a call cannot be shown; undefined if they can be. There are limits since the
 * form of each question contains all questions.
 */
export function problemOfQuestions (call: WaitingCall): string | undefined {
  const { openQuestions, questionsSize } = managementLimits.console
  const count = call.open.length
  if (count > openQuestions) return `${count} questions are open, and a page shows at most ${openQuestions}`
  const size = count * Math.ceil(Buffer.byteLength(JSON.stringify(call)) * 4 / 3)
  return size > questionsSize ? 'The questions, with the answers so far, are too large for a page' : undefined
}

/**
 * Decodes the call in the hidden field of a question's form.
 * @returns undefined if the field is empty: then the form belongs to no question
 * @throws InvalidInput for a text that no page has created, or that is too large
 */
export function readWaitingCall (text: string): AnsweredCall | undefined {
  if (text === '') return undefined
  if (text.length > managementLimits.console.questionsSize) throw new errors.InvalidInput('The question is too large')
  const value = parseIfJson(Buffer.from(text, 'base64url').toString())
  if (!Value.Check(AnsweredCall, value) || !isPlainObject(parseIfJson(value.args))) {
    throw new errors.InvalidInput('This question does not belong to this page: make the call again')
  }
  return value
}

/** An invalid answer to the question `name`: the submitted form, and the error messages by field. */
interface RefusedAnswer {
  readonly name: string, readonly form: SubmittedForm, readonly errors: Readonly<Record<string, string>>
}

/**
 * Returns the data that a page shows about the unanswered questions of a call.
 * @param href the URL to which the answers are submitted
 * @param refused an invalid answer, which is shown again with its errors
 * @throws InvalidInput if `problemOfQuestions` returns a reason
 */
export function questionsOf (
  app: FastifyInstance, href: string, call: WaitingCall, refused?: RefusedAnswer
): object[] {
  const problem = problemOfQuestions(call)
  if (problem !== undefined) throw new errors.InvalidInput(problem)
  return call.open.map(([name, question]) => {
    const { form = {}, errors: refusals = {} } = refused?.name === name ? refused : {}
    return {
      id: Buffer.from(JSON.stringify({ ...call, name })).toString('base64url'),
      name,
      kind: question.method.split('/')[0],
      text: escapeInvisible(questionTextOf(question)),
      fields: fieldsOf(app, question, form),
      href,
      errors: refusals
    }
  })
}

function questionTextOf ({ method, params = {} }: Question): string {
  const { message = '', url, systemPrompt, messages = [] } = params
  if (method === 'sampling/createMessage') {
    const lines = messages.map(({ role = '', content }) => `${role}: ${toMessageText(content)}`)
    const said = ['It asks a model for an answer. You are the model.', systemPrompt ?? '', ...lines]
    return said.filter((line) => line !== '').join('\n\n')
  }
  if (method === 'roots/list') return 'It asks which folders it can work in.'
  return url === undefined ? message : `${message}\n\nIt asks you to open ${url}`
}

const toMessageText = (content: unknown): string => {
  const { text } = (content ?? {}) as { text?: unknown }
  return typeof text === 'string' ? text : JSON.stringify(content)
}

function fieldsOf ({ kit }: FastifyInstance, { method, params = {} }: Question, form: SubmittedForm): object[] {
  const value = formFieldText(form.text)
  if (method === 'sampling/createMessage') {
    return [{ kind: 'long', name: 'text', label: 'Answer', isRequired: true, value }]
  }
  if (method === 'roots/list') {
    const hint = 'One per line, such as file:///home/me/project'
    return [{ kind: 'long', name: 'text', label: 'Addresses', hint, isRequired: false, value }]
  }
  return params.mode === 'url' ? [] : kit.formOf(params.requestedSchema).fields(argumentFieldsIn(form))
}

/** Adds the answer in a submitted form to a call. @returns the call with the answer, or error messages by field */
export function addAnswer (
  { kit }: FastifyInstance, { name, ...call }: AnsweredCall, form: SubmittedForm
): WaitingCall | { readonly errors: Readonly<Record<string, string>> } {
  const question = call.open.find(([each]) => each === name)?.[1]
  const open = call.open.filter(([each]) => each !== name)
  const withAnswer = (answer: unknown): WaitingCall =>
    ({ ...call, open, responses: { ...call.responses, [name]: answer } })
  if (!question) return { ...call, open }
  const action = formFieldText(form.answer)
  const text = formFieldText(form.text)
  switch (question.method) {
    case 'sampling/createMessage':
      if (action === 'accept' && text.trim() === '') return { errors: { text: 'Enter an answer.' } }
      return withAnswer({
        role: 'assistant',
        content: { type: 'text', text: action === 'accept' ? text : 'The user declined.' },
        model: 'a person',
        stopReason: 'endTurn'
      })
    case 'roots/list': {
      const lines = action === 'accept' ? text.split(/\s+/).filter((line) => line !== '') : []
      return withAnswer({ roots: lines.map((uri) => ({ uri })) })
    }
    default: {
      if (action !== 'accept') return withAnswer({ action: action === 'decline' ? 'decline' : 'cancel' })
      if (question.params?.mode === 'url') return withAnswer({ action: 'accept' })
      const read = kit.formOf(question.params?.requestedSchema, { wantsText: true }).read(argumentFieldsIn(form))
      return 'errors' in read ? read : withAnswer({ action: 'accept', content: JSON.parse(read.json) as unknown })
    }
  }
}
