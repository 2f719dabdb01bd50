import { useRoute } from 'vitepress'
import DefaultTheme from 'vitepress/theme'
import { nextTick, onMounted, watch } from 'vue'
import './style.css'

export default {
  extends: DefaultTheme,
  setup() {
    const route = useRoute()
    onMounted(() => {
      watch(() => route.path, markMain, { immediate: true })
    })
  },
}

/** The start page has no <main>, so its content gets the role. Other pages have one. */
async function markMain() {
  await nextTick()
  const content = document.getElementById('VPContent')
  if (content?.classList.contains('is-home')) content.setAttribute('role', 'main')
  else content?.removeAttribute('role')
}
