// The theme complains in the console unless the page names a mode, light, dark or auto. Naming one in
// the settings would write data-theme="auto" into the pages, which have no colors then when scripts
// are off. This runs before the theme's own script.
document.documentElement.dataset.mode ||= "auto";
