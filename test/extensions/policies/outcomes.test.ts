// Outcomes of conditions that name neither arguments nor time are kept for a caller and an item, and for nothing else.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { compileCondition, KeyFacts, PrincipalFacts } from '../../../plugins/extensions/policies/cel.ts'
import { decideAbout } from '../../../plugins/extensions/policies/decision.ts'
import { Ruleset } from '../../../plugins/extensions/policies/ruleset.ts'
import { makeStaticCatalogue, type Catalogue } from '../../../protocol/lists.ts'
import type { Policy } from '../../../schemas/policies.ts'

const rule = (id: string, when: string, then: Policy['then']): Policy => ({ id, name: id, enabled: true, mode: 'enforce', when, then })
const ruleset = new Ruleset([
  rule('writers', '"writers" in principal.teams && !tool.annotations.readOnlyHint', 'deny'),
  rule('key', 'principal.key.name == "ci" && route == "/mcp"', 'hide'),
  rule('args', 'args.path == "/etc"', 'ask')
])
const listed = (readOnlyHint: boolean): Catalogue =>
  makeStaticCatalogue({ name: 'up', version: '1', tools: [{ name: 'read', inputSchema: { type: 'object' }, annotations: { readOnlyHint } }] })
const caller = (teams: string[], key = ''): PrincipalFacts =>
  new PrincipalFacts({ username: 'ada', isAdmin: false, teams, key: new KeyFacts('', key), address: '', client: '' })

test('what is kept of a call counts for no other caller, route, item, list or arguments', async () => {
  const [readOnly, writing] = [listed(true), listed(false)]
  for (let round = 0; round < 3; round++) {
    for (const [expected, teams, catalogue, { key, route = '/mcp', name = 'read', path = '/tmp' }] of [
      ['allow', ['writers'], readOnly, {}],
      ['deny', ['writers'], writing, {}],
      ['deny', ['writers'], undefined, {}],
      ['deny', ['writers'], readOnly, { name: 'unlisted' }],
      ['allow', ['readers'], writing, {}],
      ['hide', ['readers'], writing, { key: 'ci' }],
      ['allow', ['readers'], writing, { key: 'ci', route: '/mcp/up' }],
      ['ask', ['writers'], readOnly, { path: '/etc' }]
    ] as ReadonlyArray<[string, string[], Catalogue | undefined, Partial<Record<'key' | 'route' | 'name' | 'path', string>>]>) {
      const args = { path }
      const { decision } = decideAbout(ruleset, {
        subject: { server: 'up', kind: 'tool', name },
        principal: caller(teams, key),
        args,
        argsText: () => JSON.stringify(args),
        route,
        now: new Date(0)
      }, catalogue)
      assert.equal(decision, expected, JSON.stringify([round, teams, key, route, name, path]))
    }
  }
})

test('a failure is not kept, since it may pass', async () => {
  const pattern = (at: number): string => `tool.name.matches("^unheard of ${String(at)}$")`
  const many = new Ruleset([rule('many', Array.from({ length: 12 }, (_, at) => pattern(at)).join(' || '), 'deny')])
  // Other patterns have taken the places of these.
  for (let at = 0; at < 1_100; at++) compileCondition(`tool.name.matches("^other ${String(at)}$")`)
  const subject = { server: 'up', kind: 'tool', name: 'read' } as const
  const outcome = (): string => decideAbout(
    many,
    { subject, principal: caller([]), args: {}, argsText: () => '{}', route: '/mcp', now: new Date(0) },
    undefined
  ).decision
  assert.deepEqual([outcome(), outcome(), outcome()].at(-1), 'allow')
})
