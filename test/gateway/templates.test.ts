// Which URIs fit a template of a server.
import assert from 'node:assert/strict'
import { test } from 'tap'
import fc from 'fast-check'
import { templateLiterals, maxUriLength, matchesTemplate } from '../../plugins/gateway/templates.ts'

const seed = Number(process.env.FC_SEED ?? Date.now() % 2 ** 31)
console.log(`fast-check: FC_SEED=${seed}`)

test('templates: which URIs fit', async (t) => {
  const fits = (template: string, uri: string): boolean => matchesTemplate(templateLiterals(template), uri)
  await t.test('a table', async () => {
    const table: Array<[string, string, boolean]> = [
      ['file:///a', 'file:///a', true], ['file:///a', 'file:///ab', false], ['file:///a', '', false],
      ['x://{id}', 'x://1', true], ['x://{id}', 'x://', true], ['x://{id}', 'y://1', false],
      ['x://{id}/end', 'x://1/end', true], ['x://{id}/end', 'x://1/end/', false], ['x://{id}/end', 'x:///end', true],
      ['x://{id}/end', 'x://end', false], ['{a}', 'anything', true], ['{a}', '', true], ['', '', true],
      ['', 'a', false], ['a{x}b{y}c', 'abc', true], ['a{x}b{y}c', 'a1b2c', true], ['a{x}b{y}c', 'ac', false],
      ['a{x}b{y}c', 'a1c2b', false], ['a{x}b{y}b', 'a1b', false], ['a{x}b{y}b', 'abb', true], ['a{x}a', 'a', false],
      ['ab{x}ba', 'aba', false], ['x{?q,r}', 'x?q=1&r=2', true], ['x{/path*}', 'x/a/b', true],
      ['x{+y}.txt', 'xa/b.txt', true], ['a.c{x}', 'abc1', false], ['a*{x}', 'aaa', false], ['(a+)+{x}', '(a+)+1', true],
      ['é{x}中', 'é😀中', true], ['a{x', 'a{x', true], ['a}x', 'a}x', true], ['a{b{c}d}e', 'a{b1d}e', true]
    ]
    for (const [template, uri, expected] of table) assert.equal(fits(template, uri), expected, `${template} and ${uri}`)
  })
  await t.test('every expansion fits', async () => {
    const piece = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.'), maxLength: 4 })
    fc.assert(fc.property(fc.array(fc.tuple(piece, piece), { maxLength: 5 }), piece, (list, last) => {
      assert.equal(
        fits(
          `${list.map(([literal], at) => `${literal}{v${at}}`).join('')}${last}`,
          `${list.map(([literal, value]) => literal + value).join('')}${last}`
        ),
        true
      )
    }), { seed, numRuns: 1_000 })
  })
  await t.test('it says what the same template as a regular expression says', async () => {
    const piece = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 2 })
    fc.assert(
      fc.property(
        fc.array(piece, { minLength: 1, maxLength: 4 }),
        fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 8 }),
        (literals, uri) => {
          assert.equal(matchesTemplate(literals, uri), new RegExp(`^${literals.join('.*')}$`, 's').test(uri))
        }
      ),
      { seed, numRuns: 2_000 }
    )
  })

  await t.test('nor takes it long: many expressions, long literals, braces without end', async () => {
    // What grows with the square of this takes hours.
    const size = 1_000_000
    const most = maxUriLength
    const hostile: Array<[says: string, template: string, uri: string, fits: boolean]> = [
      ['an expression after each letter', '{x}a'.repeat(size / 4), 'a'.repeat(most), false],
      ['as many as there are letters', '{x}a'.repeat(most), 'a'.repeat(most), true],
      ['and no end', `${'{x}a'.repeat(most)}b`, 'a'.repeat(most), false],
      ['a long literal that almost fits', `x{a}${'a'.repeat(most / 2)}b{c}`, `x${'a'.repeat(most - 1)}`, false],
      ['a literal that fits again and again but for its beginning', `x{v}b${'a'.repeat(600)}{w}`, `x${`b${'a'.repeat(599)}`.repeat(13)}z`, false],
      ['opening braces', '{'.repeat(size), '{'.repeat(most), false],
      ['pairs of them', '{}'.repeat(size / 2), 'a'.repeat(most), true],
      ['open ones and one that closes', `${'{a'.repeat(size / 2)}}`, 'a'.repeat(most), false],
      ['a URI that is longer than any', '{x}', 'a'.repeat(most + 1), false]
    ]
    for (const [says, template, uri, expected] of hostile) assert.equal(fits(template, uri), expected, says)
  })
})
