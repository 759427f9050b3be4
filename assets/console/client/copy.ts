/**
 * A click on `[data-copy]` copies the text of the `pre` beside it; the button then shows a tick, or that copying
 * failed.
 */
export function copyOnClick (): void {
  document.addEventListener('click', (event) => {
    const button = event.target instanceof Element ? event.target.closest<HTMLButtonElement>('[data-copy]') : null
    const text = button?.parentElement?.querySelector('pre')?.textContent
    const label = button?.querySelector('span')
    if (!button || !label || text === undefined || text === null) return
    const icon = button.querySelector('use')
    const copied = icon?.getAttribute('href') ?? ''
    void copy(text, button).then((isCopied) => {
      label.textContent = isCopied ? 'Copied' : 'Select and copy the text'
      label.setAttribute('role', 'status')
      label.classList.toggle('hidden-text', isCopied)
      if (isCopied) icon?.setAttribute('href', copied.replace('#copy', '#check'))
      setTimeout(() => {
        label.textContent = 'Copy'
        label.classList.add('hidden-text')
        icon?.setAttribute('href', copied.replace('#check', '#copy'))
      }, 2000)
    })
  })
}

/** The Clipboard API needs a secure context. On other pages, the text is selected and copied with `execCommand`. */
async function copy (text: string, button: HTMLElement): Promise<boolean> {
  if (window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text)
      return true
    } catch {
      // If permission is denied, `execCommand` is tried.
    }
  }
  const code = button.parentElement?.querySelector('code')
  if (!code) return false
  getSelection()?.selectAllChildren(code)
  return document.execCommand('copy')
}
