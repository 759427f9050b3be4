import type { FastifyInstance } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import { managementLimits } from '../../plugins/management/index.ts'
import { argumentsIn, type Form, textOf } from './page.ts'

/** An input request of a server: elicitation, sampling or roots. */
interface Question {
  readonly method: string
  readonly params?: {
    readonly message?: string
    readonly mode?: string
    readonly url?: string
    readonly requestedSchema?: unknown
    readonly systemPrompt?: string
    readonly messages?: ReadonlyArray<{ readonly role?: string, readonly content?: unknown }>
  }
}

/** A call that waits for input. Each question's form contains it in a hidden field. */
export interface WaitingCall {
  /** The arguments of the call, as JSON text. */
  readonly args: string
  /** The `requestState` to send back with the responses. */
  readonly state?: string
  /** The unanswered questions, by name. */
  readonly open: ReadonlyArray<readonly [name: string, question: Question]>
  readonly responses: Readonly<Record<string, unknown>>
}

/** Why the questions of a call cannot be shown; undefined: they can. Each question's form repeats all of them. */
export function problemOfQuestions (asked: WaitingCall): string | undefined {
  const { openQuestions, questionsSize } = managementLimits.console
  const count = asked.open.length
  if (count > openQuestions) return `${count} questions are open, and a page shows at most ${openQuestions}`
  const size = count * Math.ceil(Buffer.byteLength(JSON.stringify(asked)) * 4 / 3)
  return size > questionsSize ? 'The questions, with the answers so far, are too large for a page' : undefined
}

/**
 * Decodes the call in a form's hidden field; undefined: the form does not belong to a question.
 * @throws InvalidInput if the call is too large
 */
export function readWaitingCall (text: string): (WaitingCall & { readonly name: string }) | undefined {
  if (text.length > managementLimits.console.questionsSize) throw new errors.InvalidInput('The question is too large')
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    const { args, open, name } = value as Partial<Record<string, unknown>>
    if (typeof args !== 'string' || typeof name !== 'string' || !Array.isArray(open)) return undefined
    JSON.parse(args)
    return value as WaitingCall & { name: string }
  } catch {
    return undefined
  }
}

/** A question that was answered badly: its name, what was typed, and why it is refused. */
interface RefusedAnswer {
  readonly name: string, readonly form: Form, readonly errors: Readonly<Record<string, string>>
}

/**
 * The data of a call's questions for the page.
 * @param href the URL that the answers are sent to
 * @throws InvalidInput if there is a `problemOfQuestions`
 */
export function questionsOf (
  app: FastifyInstance, href: string, asked: WaitingCall, refused?: RefusedAnswer
): object[] {
  const problem = problemOfQuestions(asked)
  if (problem !== undefined) throw new errors.InvalidInput(problem)
  return asked.open.map(([name, question]) => {
    const { form = {}, errors: refusals = {} } = refused?.name === name ? refused : {}
    return {
      id: Buffer.from(JSON.stringify({ ...asked, name })).toString('base64url'),
      name,
      kind: question.method.split('/')[0],
      text: textOfQuestion(question),
      fields: fieldsOf(app, question, form),
      href,
      errors: refusals
    }
  })
}

function textOfQuestion ({ method, params = {} }: Question): string {
  const { message = '', url, systemPrompt, messages = [] } = params
  if (method === 'sampling/createMessage') {
    const lines = messages.map(({ role = '', content }) => `${role}: ${toMessageText(content)}`)
    const said = ['It asks for an answer of a model. You are the model.', systemPrompt ?? '', ...lines]
    return said.filter((line) => line !== '').join('\n\n')
  }
  if (method === 'roots/list') return 'It asks for the folders that it may work in.'
  return url === undefined ? message : `${message}\n\nIt wants you to open ${url}`
}

const toMessageText = (content: unknown): string => {
  const { text } = (content ?? {}) as { text?: unknown }
  return typeof text === 'string' ? text : JSON.stringify(content)
}

function fieldsOf ({ kit }: FastifyInstance, { method, params = {} }: Question, form: Form): object[] {
  const value = textOf(form.text)
  if (method === 'sampling/createMessage') {
    return [{ kind: 'long', name: 'text', label: 'Answer', isRequired: true, value }]
  }
  if (method === 'roots/list') {
    const hint = 'One a line, such as file:///home/me/project'
    return [{ kind: 'long', name: 'text', label: 'Addresses', hint, isRequired: true, value }]
  }
  return params.mode === 'url' ? [] : kit.formOf(params.requestedSchema).fields(argumentsIn(form))
}

/** Adds the answer to one question. @returns the call with the answer, or error messages by field */
export function addAnswer (
  { kit }: FastifyInstance, { name, ...asked }: WaitingCall & { readonly name: string }, form: Form
): WaitingCall | { readonly errors: Readonly<Record<string, string>> } {
  const question = asked.open.find(([each]) => each === name)?.[1]
  const open = asked.open.filter(([each]) => each !== name)
  const withAnswer = (answer: unknown): WaitingCall =>
    ({ ...asked, open, responses: { ...asked.responses, [name]: answer } })
  if (!question) return { ...asked, open }
  const action = textOf(form.answer)
  const text = textOf(form.text)
  switch (question.method) {
    case 'sampling/createMessage':
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
      const read = kit.formOf(question.params?.requestedSchema).read(argumentsIn(form))
      return 'errors' in read ? read : withAnswer({ action: 'accept', content: JSON.parse(read.json) as unknown })
    }
  }
}
