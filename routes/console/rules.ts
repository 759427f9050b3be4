import type { FastifyPluginAsync } from 'fastify'
import { escapeInvisible } from '../../plugins/extensions/index.ts'
import { ApiError, namesHint, namesIn } from '../../plugins/management/index.ts'
import type { Policy, PolicyTestResult } from '../../schemas/policies.ts'
import { addOrderedEntityPages, toSelectOptions } from './ordered.ts'
import { decisionWords, type SubmittedForm, parseJsonObjectOrProblem, formFieldText, type Visit } from './page.ts'

const decisions = [
  { value: 'deny', text: 'Deny' },
  { value: 'ask', text: 'Ask for approval' },
  { value: 'hide', text: 'Hide the item' },
  { value: 'allow', text: 'Allow' }
]
const modes = [{ value: 'enforce', text: 'Enforce' }, { value: 'observe', text: 'Only record the decision' }]

/** The pages that list, add, change, reorder and remove rules (policies in the API), with a form that tests a call. */
const routes: FastifyPluginAsync = async (app) => {
  /** Tests which policy decides a call. @returns data for the page, with `decision: 'error'` if the test fails */
  const testCall = async (
    { request }: Visit, { arguments: text = '', username, ...call }: Readonly<Record<string, string>>
  ): Promise<object> => {
    const args = parseJsonObjectOrProblem(text, 'Arguments are')
    if (typeof args === 'string') return { decision: 'error', text: args }
    try {
      const body = { ...call, principal: { username }, arguments: args }
      const { data } = await app.kit.api.ask(request, 'POST', '/policies/test', body)
      const { decision, policy, reason, observed = [] } = data as PolicyTestResult
      const others = observed.map((each) => `${each.name} ${decisionWords[each.decision]}`)
      return {
        decision,
        // If the server or the tool does not exist, the reason says so.
        text: escapeInvisible(policy === null
          ? `${reason.replace(/^No policy matches/, 'No rule matches: the call is allowed')}.`
          : `${policy.name} ${decisionWords[decision]}. ${reason}.`),
        under: others.length === 0 ? undefined : escapeInvisible(`Only observed: ${others.join(', ')}.`)
      }
    } catch (error) {
      if (error instanceof ApiError) return { decision: 'error', text: error.message }
      throw error
    }
  }

  addOrderedEntityPages(app, {
    page: 'rules',
    path: '/policies',
    entries: app.policies.entries,
    verbPhrase: 'decides calls',
    rowOf: ({ when, then: decision, mode, approvers = [] }) => ({
      about: escapeInvisible(when),
      isExpression: true,
      effect: {
        text: decisionWords[decision],
        ...approvers.length > 0 && { under: `Approvers: ${escapeInvisible(approvers.join(', '))}` }
      },
      tags: mode === 'observe' ? ['observe only'] : []
    }),
    fieldsOf,
    toBody: toPolicy
  }, async (visit) => {
    const { username = '', server = '', tool = '', arguments: args = '' } = visit.query
    return {
      users: app.users.list().map((user) => user.username),
      asked: { username, server, tool, arguments: args },
      tested: tool === '' ? undefined : await testCall(visit, { username, server, tool, arguments: args })
    }
  })
}
export default routes

const fieldsOf = (
  { name, when, then: decision, mode = 'enforce', approvers, message }: Partial<Policy>
): object[] => [
  { name: 'name', label: 'Name', required: true, value: name },
  {
    name: 'when',
    label: 'When',
    type: 'textarea',
    rows: 4,
    required: true,
    value: when,
    hint: 'A CEL expression over principal, tool, args, route and now, for example: ' +
      'tool.annotations.destructiveHint && !principal.isAdmin'
  },
  { name: 'then', label: 'Then', type: 'select', options: toSelectOptions(decisions, decision) },
  { name: 'mode', label: 'Mode', type: 'select', options: toSelectOptions(modes, mode) },
  {
    name: 'approvers',
    label: 'Approvers',
    value: approvers?.join(', '),
    hint: `For a rule that asks: usernames ${namesHint}. If empty, the caller’s client is asked.`
  },
  { name: 'message', label: 'Message', value: message, hint: 'Shown to the caller.' }
]

/** Converts a form to a request body for the API, without optional members whose fields are empty. */
function toPolicy (sent: SubmittedForm): object {
  const approvers = namesIn(formFieldText(sent.approvers))
  const message = formFieldText(sent.message).trim()
  return {
    name: formFieldText(sent.name),
    when: formFieldText(sent.when).trim(),
    then: formFieldText(sent.then),
    mode: formFieldText(sent.mode),
    ...approvers.length > 0 && { approvers },
    ...message !== '' && { message }
  }
}
