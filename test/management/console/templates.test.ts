import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { parse, type DefaultTreeAdapterTypes as Tree } from 'parse5'
import { test } from 'tap'
import { assetPath } from '../../../package.ts'
import { loadPageTemplates } from '../../../plugins/management/console/render.ts'
import { capitalizeMessage } from '../../../plugins/management/console/sentences.ts'

const root = assetPath('console')
const templates = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.eta'))
const textOf = (name: string): string => readFileSync(`${root}/${name}`, 'utf8')
const eta = await loadPageTemplates()
const it = {
  base: '/console',
  page: 'x',
  title: 'X',
  path: '/console/x?q=1',
  csrf: 'token',
  user: null,
  nav: [],
  theme: 'auto',
  readonly: false,
  assets: { css: '/a.css', js: '/a.js', icons: '/icons.svg' },
  version: '1',
  sentence: capitalizeMessage,
  values: {},
  errors: {}
}
const render = (name: string, data: object = {}): string => eta.render(name, { ...it, ...data })

/** All elements of a page or a part of one. */
function elementsOf (html: string): Tree.Element[] {
  const all: Tree.Element[] = []
  const visit = (node: Tree.Node): void => {
    if ('attrs' in node) all.push(node)
    if ('childNodes' in node) node.childNodes.forEach(visit)
  }
  visit(parse(html))
  return all
}
const attribute = (element: Tree.Element, name: string): string | undefined =>
  element.attrs.find((each) => each.name === name)?.value

void test('templates write nothing unescaped but other templates', async () => {
  for (const name of templates) {
    for (const [, code] of textOf(name).matchAll(/<%~\s*([\s\S]*?)%>/g)) {
      assert.match(code ?? '', /^(include\('@|it\.body\s*$)/, `${name}: ${code}`)
    }
  }
})

void test('templates have no inline script, style or handler, and no address of another host', async () => {
  for (const name of templates) {
    // Code may hold such words; what is sent is the rest.
    const sent = textOf(name).replace(/<%[\s\S]*?%>/g, '')
    assert.doesNotMatch(sent, /<style|\sstyle=|\son[a-z]+=|javascript:|hx-on|hx-vals|js:/, name)
    assert.doesNotMatch(sent, /<script(?![^>]*\ssrc=)/, name)
    assert.doesNotMatch(sent, /(?:href|src|action)="(?:https?:)?\/\//, name)
  }
})

void test('templates name icons that are bundled, and each of these', async () => {
  const bundled = readFileSync(new URL('../../../cli/console-assets.mjs', import.meta.url), 'utf8')
  for (const name of templates) {
    for (const [, icon] of textOf(name).matchAll(/\bicon: '([a-z0-9-]+)'/g)) {
      assert.ok(bundled.includes(`'${icon}'`), `${name}: ${icon}`)
    }
  }
  const all = templates.map(textOf).join('\n')
  const [, list = ''] = /const icons = \[([^\]]+)/.exec(bundled) ?? []
  for (const [icon] of list.matchAll(/'[a-z0-9-]+'/g)) assert.ok(all.includes(icon), icon)
})

void test('every form that is sent by POST has the token against CSRF', async () => {
  for (const name of templates) {
    for (const [, form] of textOf(name).matchAll(/<form[^>]*method="post"([\s\S]*?)<\/form>/g)) {
      assert.match(form ?? '', /include\('@csrf'\)/, name)
    }
  }
})

const hostile = '"><img src=x onerror=alert(1)><script>alert(1)</script>\' onfocus=alert(1) x="'

void test('what servers and users write stays text', async () => {
  const action = { label: hostile, href: '/console/x', method: 'post', fields: { [hostile]: hostile } }
  const parts = [
    render('@problem', { problem: { state: 'failed', name: hostile, text: hostile, href: '/console/x', action } }),
    render('@code', { text: hostile, label: hostile, isCopied: true }),
    render('@field', { name: 'name', label: hostile, value: hostile, hint: hostile, errors: { name: hostile } }),
    render('@field', { name: 'name', label: hostile, value: hostile, type: 'textarea' }),
    render('@banner', { kind: 'error', text: hostile }),
    render('@header', { heading: hostile, lead: hostile, crumbs: [{ label: hostile, href: '/console' }], buttons: [action] }),
    render('@switch', { label: hostile, id: hostile, part: 'items', isOn: true, href: '/console/x', fields: { key: hostile } }),
    render('@search', { q: hostile, label: 'Find', target: 'x', keep: { state: hostile } }),
    render('@cost', { tokens: 1, of: 2, label: hostile, href: '/console/x' })
  ]
  for (const html of parts) {
    for (const element of elementsOf(html)) {
      assert.ok(!['script', 'img'].includes(element.tagName), html)
      assert.ok(!element.attrs.some(({ name }) => name.startsWith('on')), html)
    }
  }
})

void test('a text area shows what was typed, line breaks at its start included', async () => {
  const html = render('@field', { name: 'text', label: 'Text', value: '\n\nx </textarea>', type: 'textarea' })
  const area = elementsOf(html).find(({ tagName }) => tagName === 'textarea')
  assert.equal(area?.childNodes.map((node) => 'value' in node ? node.value : '').join(''), '\n\nx </textarea>')
})

void test('a link leads to http and https alone', async () => {
  for (const href of ['https://example.com/a?b=c', 'http://127.0.0.1:3000/']) {
    const link = elementsOf(render('@link', { href })).find(({ tagName }) => tagName === 'a')
    assert.equal(link && attribute(link, 'href'), href)
    assert.equal(link && attribute(link, 'rel'), 'noopener noreferrer')
  }
  for (const href of ['javascript:alert(1)', 'JavaScript:alert(1)', ' javascript:alert(1)', 'data:text/html,x', '//x', 'https:\n//x', 'file:///etc/passwd']) {
    const html = render('@link', { href })
    assert.ok(!elementsOf(html).some(({ tagName }) => tagName === 'a'), href)
  }
})

void test('errors stand at their field, for eyes and for screen readers', async () => {
  const html = render('@field', { name: 'name', label: 'Name', value: 'typed', errors: { name: 'It is taken.' } })
  const input = elementsOf(html).find(({ tagName }) => tagName === 'input')
  assert.ok(input)
  assert.equal(attribute(input, 'value'), 'typed')
  assert.equal(attribute(input, 'aria-invalid'), 'true')
  assert.equal(attribute(input, 'aria-describedby'), 'name-problem')
  assert.match(html, /id="name-problem"[\s\S]*It is taken\./)
})

void test('a password is never sent back', async () => {
  assert.doesNotMatch(render('@field', { name: 'password', label: 'Password', type: 'password', value: 'secret' }), /secret/)
})

void test('with READONLY, buttons that change something are disabled', async () => {
  const action = { label: 'Reload', href: '/console/x', method: 'post' }
  const fields = { label: 'x', id: 'x', part: 'x', isOn: true, href: '/console/x', fields: {} }
  for (const readonly of [false, true]) {
    for (const html of [render('@action', { action, readonly }), render('@switch', { ...fields, readonly })]) {
      const button = elementsOf(html).find(({ tagName }) => tagName === 'button')
      assert.equal(button && attribute(button, 'disabled') !== undefined, readonly)
    }
  }
})

void test('strangers see neither navigation nor pages; people see theirs, with the current one marked', async () => {
  const nav = [
    { href: '/console/overview', title: 'Overview', page: 'overview', isCurrent: true },
    { href: '/console/new', title: 'A page of later', page: 'new', isCurrent: false }
  ]
  const shown = elementsOf(render('@layout', { nav, user: { username: 'maria', isAdmin: false }, body: '<h1>X</h1>' }))
  const links = shown.filter((each) => each.tagName === 'a' && attribute(each, 'href')?.startsWith('/console/'))
  assert.ok(links.some((each) => attribute(each, 'aria-current') === 'page' && attribute(each, 'href') === '/console/overview'))
  assert.ok(links.some((each) => attribute(each, 'href') === '/console/new'))
  assert.ok(!elementsOf(render('@layout', { body: '<h1>X</h1>' })).some(({ tagName }) => tagName === 'nav'))
})
